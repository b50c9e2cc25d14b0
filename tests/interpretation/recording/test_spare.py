"""A dropped trace leaves its memory to the next recording of the model, and not longer."""

import gc
import weakref

import torch
from torch import nn
from torch.nn import functional as F

import saccade
from saccade.interpretation.recording import spare

LARGE = 2, 4, 128, 64
"""The shape of a tensor with 256 KB."""


class Projecting(nn.Module):
    """Its queries and keys are new tensors at every call."""

    def forward(self, x):
        return F.scaled_dot_product_attention(x * 2, x * 3, x)


def record(model, x, calls=1):
    with torch.no_grad(), saccade.record(model) as trace:
        for _ in range(calls):
            model(x)
    return trace


def kept(trace):
    return [weakref.ref(tensor) for call in trace.backlog.tensors() for tensor in call]


def alive(references):
    return [reference() is not None for reference in references]


def test_memory_passes_from_one_recording_to_the_next():
    model, x = nn.Sequential(Projecting(), Projecting()), torch.randn(LARGE)
    trace = record(model, x)
    old = kept(trace)
    del trace
    assert alive(old) == [True] * 4  # until the next recording
    during = []
    with torch.no_grad(), saccade.record(model) as trace:
        for layer in model:
            layer(x)
            during.append(alive(old))
    assert during == [[False, False, True, True], [False] * 4]
    new = kept(trace)
    assert alive(new) == [True] * 4


def test_what_the_next_recording_does_not_need_is_freed():
    model, x = nn.Sequential(Projecting(), Projecting()), torch.randn(LARGE)
    trace = record(model, x)
    old = kept(trace)
    del trace
    with saccade.record(model):
        assert alive(old) == [True] * 4
    assert alive(old) == [False] * 4


def test_memory_goes_with_the_model():
    model, x = Projecting(), torch.randn(LARGE)
    trace = record(model, x)
    old = kept(trace)
    del trace
    assert alive(old) == [True] * 2
    del model
    gc.collect()
    assert alive(old) == [False] * 2


def test_little_and_very_much_is_freed_at_once(monkeypatch):
    model = Projecting()
    for shape in ((*LARGE[:2], 5, 7), LARGE):
        trace = record(model, torch.randn(shape))
        old = kept(trace) if shape == LARGE else [weakref.ref(t) for t in trace["Projecting"].kept.tensors.values()]
        monkeypatch.setattr(spare, "MOST", 1 << 18)
        del trace
        assert old
        assert not any(alive(old))


def test_parameters_do_not_pass():
    layer = nn.TransformerEncoderLayer(256, 4, 64, batch_first=True).eval()
    trace = record(layer, torch.randn(2, 128, 256))
    (spared,) = spare.large(trace._tensors())
    assert {tuple(tensor.shape) for tensor in spared} == {(2, 128, 256)}
