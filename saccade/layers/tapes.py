"""Tapes: all earlier states of an `LSTMNLayer`, and what its steps read from them."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from saccade.attention import Attention
from saccade.distributions import Categorical
from saccade.kernels.modes import exporting
from saccade.memory import Memory
from saccade.reading import Reading, State


class Tapes(NamedTuple):
    """All states of an `LSTMNLayer`: h and c after each step, (batch, length, hidden_dim), and their mask."""

    hidden: Tensor
    cells: Tensor
    mask: Tensor


class TapeRead(NamedTuple):
    """What a step read from tapes: h and c, (batch, hidden_dim), zeros before the first; `state` of the attention."""

    hidden: Tensor
    cell: Tensor
    state: State


class CarriedTapes(NamedTuple):
    """What an `LSTMNLayer` carries from one piece of a text to the next; without a graph."""

    tapes: Tensor
    """[h; c] after each of the last steps, (batch, steps, 2 * hidden_dim)."""
    read: Tensor
    """The h that the last step read, (batch, hidden_dim)."""


class LSTMNState(NamedTuple):
    """What an `LSTMNLayer` keeps between steps.

    Args:
        hidden: the last h, (batch, hidden_dim), zeros before the first step.
        tapes: every h so far, as the keys of a memory whose values are [h; c].
        read: what the last step read from them.
        source, source_read: the same of the source that is read, if there is one.
    """

    hidden: Tensor
    tapes: Memory
    read: TapeRead
    source: Memory | None = None
    source_read: TapeRead | None = None


def read_tapes(attention: Attention, inputs: Tensor, before: TapeRead, tapes: Memory) -> Reading:
    """What a step reads, given its input and what the step before it read."""
    query = torch.cat([inputs, before.hidden], dim=-1).unsqueeze(1)
    if exporting() and tapes.values.shape[-2] == 0:  # a graph cannot look at nothing
        nothing = tapes.values.new_zeros(query.shape[0], 1, 0)
        return Reading(nothing @ tapes.values, Categorical(nothing))
    return attention.read(query, tapes, state=before.state)


def read_of(reading: Reading) -> TapeRead:
    """The h and c of a reading."""
    hidden, cell = reading.context.squeeze(1).chunk(2, -1)
    return TapeRead(hidden, cell, reading.state)


def as_read(hidden: Tensor) -> TapeRead:
    """All that the next query takes from what was read, by an attention without a state."""
    return TapeRead(hidden, hidden, State())
