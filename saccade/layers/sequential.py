"""A selection that decides on one key after another."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.checks import check_count
from saccade.distributions import Bernoulli, BinarySequence, Distribution
from saccade.kernels.modes import exporting
from saccade.kernels.steps import outputs_of_steps
from saccade.layers.cell import CellState
from saccade.layers.gathering import pack, unpack
from saccade.layers.recurrent import CellName, RecurrentLayer
from saccade.selections import BinaryConcrete, Selection


class SequentialSelection(Selection):
    r"""Picks any number of keys, each given a recurrent state of the keys and decisions before it.

    .. math:: p(z_j = 1 \mid z_{<j}) = \sigma(s_j + w^\top u_{j-1}), \qquad u_j = f([k_j; z_j], u_{j-1})

    Training samples, evaluation is greedy: it picks what is more likely than not. Masked keys are passed over.

    Shapes:
        scores (*batch, queries, keys), mask of the same shape, keys (*batch, keys, key_dim) -> a `BinarySequence`.

    Reference:
        Lei et al. (2016), arXiv:1606.04155, section 3, the recurrent (dependent) generator; f is an RCNN there.

    Args:
        key_dim: features of a key.
        hidden_dim: features of u.
        cell: of the recurrent layer f.
        relaxation: how training draws a z that gradients pass through; None draws plain samples.
    """

    stochastic = True

    def __init__(
        self,
        *,
        key_dim: int,
        hidden_dim: int = 30,
        cell: CellName = "rcnn",
        relaxation: BinaryConcrete | None = None,
    ) -> None:
        super().__init__()
        check_count("hidden_dim", hidden_dim)
        self.layer = RecurrentLayer(input_dim=key_dim + 1, hidden_dim=hidden_dim, cell=cell)
        self.output_proj = nn.Linear(hidden_dim, 1, bias=False)
        self.relaxation = relaxation

    def prepare(self, keys: Tensor, *, mask: Tensor | None = None, start: int = 0) -> Tensor:
        """The part of the recurrent layer's projection that does not depend on decisions."""
        proj = self.layer.input_proj
        return F.linear(keys, proj.weight[:, :-1], proj.bias)

    def select(self, scores: Tensor, mask: Tensor, *, query: Tensor | None, prepared: Any, state: Any) -> Distribution:
        shape, length = scores.shape, scores.shape[-1]
        scores = scores.masked_fill(~mask, 0.0)
        flat, real = (each.reshape(math.prod(shape[:-1]), length) for each in (scores, mask))
        inputs = prepared.unsqueeze(-3).expand(*shape, prepared.shape[-1]).reshape(*flat.shape, prepared.shape[-1])

        def bernoulli(logits: Tensor, z: Tensor) -> Bernoulli:
            logits = logits.reshape(z.shape).masked_fill(~mask, 0.0)
            probs = torch.sigmoid(logits).masked_fill(~mask, 0.0)
            return Bernoulli(probs, logits=logits, training=self.training, drawn=z)

        def given(z: Tensor) -> Bernoulli:
            rows = z.reshape(z.shape[:-1].numel(), length)
            times = len(rows) // max(len(flat), 1)  # z may have one more axis in front, such as that of several samples
            follow = self._follow(inputs.repeat(times, 1, 1), rows, real.repeat(times, 1))
            return bernoulli(flat.repeat(times, 1) + follow, z)

        @torch.no_grad()
        def decide(sample: bool) -> Tensor:
            return self._walk(flat, inputs, real, _sampled if sample else _greedy)[0].reshape(shape)

        if self.training and self.relaxation is None:
            along = given(decide(True))
        else:
            choose = self.relaxation.relaxed if self.training and self.relaxation is not None else _greedy
            z, logits = self._walk(flat, inputs, real, choose)
            along = bernoulli(logits, z.reshape(shape))
        return BinarySequence(along, given, decide, training=self.training)

    def _follow(self, inputs: Tensor, z: Tensor, real: Tensor) -> Tensor:
        """w u_{j-1} for each key (rows, keys) of decisions that are known: all steps at once."""
        packed, mask, places = pack(inputs + z.unsqueeze(-1) * self.layer.input_proj.weight[:, -1], real)
        before = F.pad(self.layer.cell(packed)[0], (0, 0, 1, 0))[:, :-1]
        return unpack(self.output_proj(before).squeeze(-1), mask, places, z.shape[1])

    def _walk(self, scores: Tensor, inputs: Tensor, real: Tensor, choose: Any) -> tuple[Tensor, Tensor]:
        """Decides key by key: z and the logits, (rows, keys)."""
        state = self.layer.cell.zeros(scores.shape[0], like=inputs)
        by_decision = self.layer.input_proj.weight[:, -1]

        def step(row: tuple[Tensor, ...], before: CellState) -> tuple[CellState, CellState]:
            score, given, allowed = row
            logit = score + self.output_proj(before[0]).squeeze(-1)
            z = choose(logit).masked_fill(~allowed, 0.0)
            after = self.layer.cell.step(given + z.unsqueeze(-1) * by_decision, before)
            kept = (torch.where(allowed.unsqueeze(-1), new, old) for new, old in zip(after, before, strict=True))
            return tuple(kept), (z, logit)

        if exporting():
            rows = tuple(each.transpose(0, 1) for each in (scores, inputs, real))
            found = outputs_of_steps(step, state, rows)
            return found[0].transpose(0, 1), found[1].transpose(0, 1)
        decisions, logits = [], []
        for row in zip(scores.unbind(1), inputs.unbind(1), real.unbind(1), strict=True):
            state, (z, logit) = step(row, state)
            decisions.append(z)
            logits.append(logit)
        if not decisions:
            return torch.zeros_like(scores), torch.zeros_like(scores)
        return torch.stack(decisions, 1), torch.stack(logits, 1)


def _greedy(logits: Tensor) -> Tensor:
    return (logits >= 0).to(logits.dtype)


def _sampled(logits: Tensor) -> Tensor:
    return torch.bernoulli(torch.sigmoid(logits))
