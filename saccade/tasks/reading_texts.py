"""Texts that a language model reads from left to right: how likely each token is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from saccade.data.special import BOS, EOS, PAD
from saccade.evaluation.neural_cache import NeuralCache, Remembered
from saccade.models import LanguageModel
from saccade.tasks.guessing import guesses

RECENT = 100
"""A token counts as repeated if it occurred among this many tokens before it."""

LANE = 10_000
"""The minimum number of tokens in a lane: each lane starts without a past, which then hardly matters."""


class Tokens(NamedTuple):
    """Tokens that were read, in order; tensors (tokens,) on the CPU."""

    ids: Tensor
    log_probs: Tensor
    """In nats, float64."""
    right: Tensor
    """1.0 where the model would have chosen the token itself."""
    repeated: Tensor
    """Whether the token is among the `RECENT` before it."""

    @staticmethod
    def joined(parts: Sequence[Tokens]) -> Tokens:
        """Those of several pieces, at least one."""
        return Tokens(*(torch.cat(several) for several in zip(*parts, strict=True)))

    def part(self, start: int, end: int) -> Tokens:
        """Those from one place to another."""
        return Tokens(*(each[start:end] for each in self))


@torch.no_grad()
def read_lanes(
    model: LanguageModel,
    lanes: Sequence[Sequence[int]],
    *,
    piece: int,
    together: int,
    cache: NeuralCache | None = None,
) -> list[Tokens]:
    """Reads texts side by side, each from its first token on, and computes how likely the later tokens were.

    Args:
        model: causal, in evaluation mode; its carried state is passed from piece to piece.
        lanes: the tokens of each text, the start token first.
        piece: how many tokens are predicted at a time.
        together: how many texts share a batch.
        cache: remembers recent states and the tokens that followed them.
    """
    order = sorted(range(len(lanes)), key=lambda number: -len(lanes[number]))
    found: dict[int, Tokens] = {}
    for start in range(0, len(order), together):
        numbers = order[start : start + together]
        rows = [lanes[number] for number in numbers]
        parts = _read_together(model, rows, piece, cache)
        for number, row, scored in zip(numbers, rows, parts, strict=True):
            ids = torch.tensor(row[1:], dtype=torch.long)
            found[number] = Tokens(ids, scored[:, 0], scored[:, 1], torch.tensor(repeats(row)[1:], dtype=torch.bool))
    return [found[number] for number in range(len(lanes))]


def _read_together(
    model: LanguageModel, rows: Sequence[Sequence[int]], piece: int, cache: NeuralCache | None
) -> list[Tensor]:
    """(tokens - 1, 2) for each row: the log-probability, and whether the model would have chosen the token."""
    device = next(model.parameters()).device
    parts: list[list[Tensor]] = [[torch.zeros(0, 2, dtype=torch.float64)] for _ in rows]
    carried: dict[str, Tensor] = {}
    remembered: Remembered | None = None
    for start in range(0, max(len(row) for row in rows) - 1, piece):
        cut = [torch.tensor(row[start : start + piece + 1] or [PAD], dtype=torch.long) for row in rows]
        ids = pad_sequence(cut, batch_first=True, padding_value=PAD).to(device)
        given, targets = ids[:, :-1], ids[:, 1:]
        real = torch.arange(given.shape[1], device=device) < torch.tensor([[len(each) - 1] for each in cut]).to(device)
        features, carried = model.read(given, given != PAD, carried)
        logits = model.head.logits(features[real])
        if cache is not None:
            logits, remembered = cache.mixed(logits, model.states_of(features), targets, real, remembered)
        scored = guesses(logits, targets[real])[:, [0, 2]]
        for each, own in zip(parts, scored.split(real.sum(1).tolist()), strict=True):
            each.append(own)
    return [torch.cat(each) for each in parts]


def repeats(tokens: Sequence[int]) -> list[bool]:
    """Whether each token is among the `RECENT` before it."""
    last: dict[int, int] = {}
    found = []
    for place, token in enumerate(tokens):
        found.append(place - last.get(token, -RECENT - 1) <= RECENT)
        last[token] = place
    return found


def lane_start(total: int) -> int:
    """The token before a lane of a text with so many tokens.

    A long text is in lanes, each after the end of another text. The start token would mislead a model there: training
    reads a whole corpus as one text and shows it only once. Whether a lane is read here or by a worker must not matter.
    """
    return EOS if total > LANE // 2 else BOS


def in_lanes(lengths: Sequence[int], most: int) -> list[list[int]]:
    """Texts of these lengths in up to `most` lanes of neighbours, each long enough for its start not to matter."""
    total = sum(lengths)
    count = max(1, min(most, total // LANE, len(lengths)))
    lanes: list[list[int]] = [[] for _ in range(count)]
    read = 0
    for number, length in enumerate(lengths):
        lanes[min(count - 1, read * count // max(total, 1))].append(number)
        read += length
    return [lane for lane in lanes if lane]
