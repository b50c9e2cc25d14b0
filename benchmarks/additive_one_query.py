"""A decoding step of additive attention against JoeyNMT's, with the same weights and prepared keys."""

import dataclasses
from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.harness import Timing, forward_backward
from saccade import Attention
from saccade.scores import AdditiveScore

BATCH, KEYS, DIM = 32, 1000, 256


def build_backward() -> tuple[Callable[[], object], Callable[[], object]]:
    query, prepared, values, ours, peer, parameters = models()
    return (
        forward_backward(ours, query, prepared, values, parameters=parameters[0]),
        forward_backward(peer, query, prepared, values, parameters=parameters[1]),
    )


def build_forward() -> tuple[Callable[[], object], Callable[[], object]]:
    query, prepared, values, ours, peer, _ = models()
    without_gradients = torch.no_grad()
    return (
        without_gradients(lambda: ours(query, prepared, values)),
        without_gradients(lambda: peer(query, prepared, values)),
    )


def models():
    from joeynmt.attention import BahdanauAttention

    theirs = BahdanauAttention(hidden_size=DIM, key_size=DIM, query_size=DIM)
    score = AdditiveScore(query_dim=DIM, key_dim=DIM, hidden_dim=DIM)
    score.query_proj.load_state_dict(theirs.query_layer.state_dict())
    score.key_proj.load_state_dict(theirs.key_layer.state_dict())
    score.hidden_proj.load_state_dict(theirs.energy_layer.state_dict())
    attention = Attention(score=score)
    mask = torch.rand(BATCH, 1, KEYS) > 0.1
    query = torch.randn(BATCH, 1, DIM, requires_grad=True)
    values = torch.randn(BATCH, KEYS, DIM, requires_grad=True)
    memory = attention.prepare(values.detach(), mask=mask)
    prepared = memory.prepared[0].detach().requires_grad_()

    def ours(query: Tensor, prepared: Tensor, values: Tensor) -> Tensor:
        prepared_memory = dataclasses.replace(memory, prepared=(prepared, memory.prepared[1]), values=values)
        return attention.read(query, prepared_memory).context

    def peer(query: Tensor, prepared: Tensor, values: Tensor) -> Tensor:
        theirs.proj_keys = prepared
        return theirs(query, mask, values)[0]

    torch.testing.assert_close(ours(query, prepared, values), peer(query, prepared, values), rtol=1e-4, atol=1e-4)
    our_parameters = [score.query_proj.weight, score.hidden_proj.weight]
    their_parameters = [theirs.query_layer.weight, theirs.energy_layer.weight]
    return query, prepared, values, ours, peer, (our_parameters, their_parameters)


def cases() -> list[Timing]:
    what, against = "additive attention, one query, 1,000 prepared keys, B=32", "JoeyNMT's BahdanauAttention"
    return [
        Timing(what, against, build_backward, must=1, aim=2),
        Timing(f"{what}: forward only", against, build_forward, must=1, aim=2),
    ]
