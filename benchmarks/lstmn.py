"""LSTMN over a tape that grows to 512 states, against the form that concatenates its tapes at each step."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.harness import Timing, forward_backward
from saccade.layers import LSTMNLayer

BATCH, STEPS, DIM, AHEAD = 8, 512, 128, 16


class Concatenating(torch.nn.Module):
    """The paper's equations as one writes them down: states are concatenated to the tapes.

    With `cached`, so are the projected keys; otherwise the whole tape is projected at each step.
    """

    def __init__(self, layer: LSTMNLayer, *, cached: bool) -> None:
        super().__init__()
        self.layer, self.cached = layer, cached

    def begin(self, batch: int) -> tuple[Tensor, ...]:
        return torch.zeros(batch, DIM), *torch.zeros(3, batch, 0, DIM).unbind()

    def step(self, x: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        read, hidden, cells, keys = state
        score, cell = self.layer.attention.score, self.layer.cell
        query = score.query_proj(torch.cat([x, read], dim=-1)).unsqueeze(1)
        projected = keys if self.cached else score.key_proj(hidden)
        weights = score.hidden_proj((query + projected).tanh()).softmax(1).mT
        read, memory = (weights @ hidden).squeeze(1), (weights @ cells).squeeze(1)
        enter, forget, candidate, leave = (self.layer.input_proj(x) + F.linear(read, cell.weight)).chunk(4, -1)
        memory = (forget + cell.bias).sigmoid() * memory + enter.sigmoid() * candidate.tanh()
        state = leave.sigmoid() * memory.tanh()
        hidden = torch.cat([hidden, state.unsqueeze(1)], dim=1)
        cells = torch.cat([cells, memory.unsqueeze(1)], dim=1)
        if self.cached:
            keys = torch.cat([keys, score.key_proj(state).unsqueeze(1)], dim=1)
        return read, hidden, cells, keys

    def forward(self, inputs: Tensor) -> Tensor:
        state = self.begin(len(inputs))
        for x in inputs.unbind(1):
            state = self.step(x, state)
        return state[1]


def build_training(*, cached: bool = False) -> tuple[Callable[[], object], Callable[[], object]]:
    """Forward and backward over all steps."""
    torch.manual_seed(0)
    layer = LSTMNLayer(input_dim=DIM, hidden_dim=DIM)
    peer, mask = Concatenating(layer, cached=cached), torch.ones(BATCH, STEPS, dtype=torch.bool)
    inputs = torch.randn(BATCH, STEPS, DIM, requires_grad=True)
    with torch.no_grad():
        torch.testing.assert_close(layer(inputs, mask).hidden, peer(inputs), rtol=1e-4, atol=1e-4)
    parameters = list(layer.parameters())
    return (
        forward_backward(lambda given: layer(given, mask).hidden, inputs, parameters=parameters),
        forward_backward(peer, inputs, parameters=parameters),
    )


def build_training_cached() -> tuple[Callable[[], object], Callable[[], object]]:
    return build_training(cached=True)


def build_steps() -> tuple[Callable[[], object], Callable[[], object]]:
    """A few steps, one by one and without gradients, over a tape of 512 states."""
    torch.manual_seed(0)
    layer = LSTMNLayer(input_dim=DIM, hidden_dim=DIM)
    peer = Concatenating(layer, cached=False)
    inputs = torch.randn(BATCH, STEPS + AHEAD, DIM)

    def continued(step: Callable, state: object) -> Callable[[], object]:
        def run() -> object:
            after = state
            for x in inputs[:, STEPS:].unbind(1):
                after = step(x, after)
            return after

        return torch.no_grad()(run)

    with torch.no_grad():
        ours, theirs = layer.begin(BATCH, like=inputs, room=STEPS + AHEAD), peer.begin(BATCH)
        for x in inputs[:, :STEPS].unbind(1):
            ours, theirs = layer.step(x, ours), peer.step(x, theirs)
    runs = continued(layer.step, ours), continued(peer.step, theirs)
    torch.testing.assert_close(runs[0]().hidden, runs[1]()[1][:, -1], rtol=1e-4, atol=1e-4)
    return runs


def cases() -> list[Timing]:
    what = f"LSTMN, {STEPS} steps forward and backward, B={BATCH}, {DIM} units"
    return [
        Timing(what, "tapes concatenated and projected at each step", build_training, must=3),
        Timing(what, "tapes and projected keys concatenated at each step", build_training_cached),
        Timing(
            f"LSTMN, {AHEAD} single steps over a tape of {STEPS}, no gradients, B={BATCH}, {DIM} units",
            "tapes concatenated and projected at each step",
            build_steps,
        ),
    ]
