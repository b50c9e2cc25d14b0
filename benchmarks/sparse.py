"""Sparsemax and entmax-1.5 against the entmax package, and against the softmax they replace."""

from collections.abc import Callable
from functools import partial

import torch

from benchmarks.harness import Build, Timing, forward_backward
from saccade.selections import entmax15, sparsemax

OURS = {"sparsemax": sparsemax, "entmax15": entmax15}


def against_entmax(mapping: str, shape: tuple[int, int], k: int | None) -> tuple[Callable[[], object], ...]:
    import entmax

    scores = torch.randn(shape, requires_grad=True)
    peer = partial(getattr(entmax, mapping), dim=-1, k=k)
    return forward_backward(OURS[mapping], scores), forward_backward(peer, scores)


def against_softmax(mapping: str, shape: tuple[int, int]) -> tuple[Callable[[], object], ...]:
    scores = torch.randn(shape, requires_grad=True)
    return forward_backward(OURS[mapping], scores), forward_backward(partial(torch.softmax, dim=-1), scores)


def cases() -> list[Timing]:
    rows = []
    for mapping in OURS:
        for shape in ((2048, 128), (1024, 1024)):
            what = f"{mapping} on {shape}"
            build: Build = partial(against_entmax, mapping, shape, None)
            rows.append(Timing(what, "entmax", build, must=4))
            rows.append(Timing(what, "softmax", partial(against_softmax, mapping, shape), aim=1 / 3))
        build = partial(against_entmax, mapping, (128, 32000), 100)
        rows.append(Timing(f"{mapping} on (128, 32000)", "entmax, k=100", build, must=1, aim=2))
    return rows
