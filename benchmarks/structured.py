"""Structured selections against torch-struct and supar: forward and backward through the marginals.

Each side gets the same float32 potentials and the same gradient of the marginals, and returns the gradient of the
potentials; `exact_errors` measures how far it is from float64.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.harness import Memory, Timing
from saccade.distributions import Chain, Tree
from saccade.losses import segment_to_segment_loss

Run = Callable[[], tuple[Tensor, ...]]
PEERS = {"torch-struct": "torch_struct", "supar": "supar"}


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def package(peer: str) -> Any:
    warnings.filterwarnings("ignore", message=".*arg_constraints.*")  # torch-struct declares none
    return importlib.import_module(PEERS[peer])


def gradients(marginals: Tensor, weights: Tensor, *potentials: Tensor) -> tuple[Tensor, ...]:
    return (marginals.detach(), *torch.autograd.grad((marginals * weights).sum(), potentials))


def chain(peer: str, batch: int, length: int, states: int, spread: float = 1.0) -> tuple[Run, Run]:
    unary, transitions = spread * random(batch, length, states), random(states, states, seed=1)
    weights = random(batch, length, states, seed=2)
    theirs = package(peer).LinearChainCRF

    def ours(dtype: torch.dtype = torch.float32) -> tuple[Tensor, ...]:
        u, t = (x.to(dtype, copy=True).requires_grad_() for x in (unary, transitions))
        return gradients(Chain.of(u, t).marginals, weights, u, t)

    def torch_struct() -> tuple[Tensor, ...]:
        u, t = (x.clone().requires_grad_() for x in (unary, transitions))
        edges = t.T + u[:, 1:, :, None]  # its edges are [later, earlier]
        edges = torch.cat([edges[:, :1] + u[:, :1, None, :], edges[:, 1:]], dim=1)
        pairs = theirs(edges).marginals
        return gradients(torch.cat([pairs[:, :1].sum(2), pairs.sum(3)], dim=1), weights, u, t)

    def supar() -> tuple[Tensor, ...]:
        u, t = (x.clone().requires_grad_() for x in (unary, transitions))
        return gradients(theirs(u, F.pad(t, (0, 1, 0, 1))).marginals, weights, u, t)

    return ours, torch_struct if peer == "torch-struct" else supar


def tree(peer: str, batch: int, size: int, projective: bool) -> tuple[Run, Run]:
    arcs, weights = random(batch, size, size), random(batch, size, size, seed=1)
    names = {
        "torch-struct": ("DependencyCRF", "NonProjectiveDependencyCRF"),
        "supar": ("DependencyCRF", "MatrixTree"),
    }
    theirs = getattr(package(peer), names[peer][0 if projective else 1])

    def ours(dtype: torch.dtype = torch.float32) -> tuple[Tensor, ...]:
        a = arcs.to(dtype, copy=True).requires_grad_()
        return gradients(Tree.of(a, projective=projective).marginals, weights, a)

    def torch_struct() -> tuple[Tensor, ...]:
        a = arcs.clone().requires_grad_()
        heads_first = theirs(a.transpose(1, 2), multiroot=False).marginals
        return gradients(heads_first.transpose(1, 2), weights, a)

    def supar() -> tuple[Tensor, ...]:
        a = arcs.clone().requires_grad_()
        roots = a.diagonal(dim1=1, dim2=2).unsqueeze(-1)
        words = a.masked_fill(torch.eye(size, dtype=torch.bool), -1e30)  # no word is its own head
        marginals = theirs(F.pad(torch.cat([roots, words], dim=-1), (0, 0, 1, 0)), multiroot=False).marginals[:, 1:]
        return gradients(marginals[..., 1:] + torch.diag_embed(marginals[..., 0]), weights, a)

    return ours, torch_struct if peer == "torch-struct" else supar


def segment_to_segment(batch: int, targets: int, sources: int) -> tuple[Run, Run]:
    words, scores = -random(batch, targets, sources).abs(), random(batch, targets, sources, seed=1)

    def ours(dtype: torch.dtype = torch.float32) -> tuple[Tensor, ...]:
        w, s = (x.to(dtype, copy=True).requires_grad_() for x in (words, scores))
        loss = segment_to_segment_loss(w, s, reduction="sum")
        return (loss.detach(), *torch.autograd.grad(loss, (w, s)))

    def double_loop() -> tuple[Tensor, ...]:
        w, s = (x.clone().requires_grad_() for x in (words, scores))
        emit, shift = F.logsigmoid(s), F.logsigmoid(-s)
        nothing = torch.full((batch,), -1e30)
        before = [torch.zeros(batch)] + [nothing] * (sources - 1)
        for j in range(targets):
            here, arrived = [], nothing
            for i in range(sources):
                moved = arrived + shift[:, j, i - 1] if i else nothing
                arrived = torch.logaddexp(moved, before[i])
                here.append(arrived + emit[:, j, i] + w[:, j, i])
            before = here
        loss = -torch.stack(before, dim=-1).logsumexp(-1).sum()
        return (loss.detach(), *torch.autograd.grad(loss, (w, s)))

    return ours, double_loop


def chain_of_two_states() -> tuple[Run, Run]:
    return chain("torch-struct", 32, 256, 2)


def chain_of_twenty_states() -> tuple[Run, Run]:
    return chain("supar", 32, 256, 20)


def projective_trees() -> tuple[Run, Run]:
    return tree("supar", 16, 60, True)


def non_projective_trees() -> tuple[Run, Run]:
    return tree("torch-struct", 16, 60, False)


def cases() -> list[Timing | Memory]:
    rows: list[Timing | Memory] = []
    for peer in PEERS:
        for length in (64, 256):
            rows.append(Timing(f"chain B=32 N={length} C=2", peer, partial(chain, peer, 32, length, 2), 3, 10))
        rows.append(Timing("chain B=32 N=256 C=20", peer, partial(chain, peer, 32, 256, 20), 2, 5))
        for size in (15, 30, 60):
            rows.append(Timing(f"projective B=16 N={size}", peer, partial(tree, peer, 16, size, True), 3, 10))
        for size in (30, 60):
            rows.append(Timing(f"non-projective B=16 N={size}", peer, partial(tree, peer, 16, size, False), 1.5, 3))
    rows.append(Timing("SSNT loss B=32 T=30 S=60", "double loop", partial(segment_to_segment, 32, 30, 60), 20))
    rows.append(Memory("chain B=32 N=256 C=2", "torch-struct", chain_of_two_states, 1))
    rows.append(Memory("chain B=32 N=256 C=20", "supar", chain_of_twenty_states, 1))
    rows.append(Memory("projective B=16 N=60", "supar", projective_trees, 1))
    rows.append(Memory("non-projective B=16 N=60", "torch-struct", non_projective_trees, 1))
    return rows


def exact_errors(sides: tuple[Callable[..., tuple[Tensor, ...]], Run]) -> tuple[float, float]:
    """How far both sides are from float64, at the worst entry of marginals and gradients."""
    exact = sides[0](torch.float64)
    ours, theirs = (
        max(float((one.double() - two).abs().max()) for one, two in zip(side(), exact, strict=True)) for side in sides
    )
    return ours, theirs
