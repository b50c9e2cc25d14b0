"""How likely texts and their words are, and which words a language model predicts better."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from saccade.artifacts import ArtifactError, read_json
from saccade.data.special import UNK
from saccade.data.tokenisers import Tokeniser
from saccade.evaluation import Table
from saccade.evaluation.perplexity import Read, perplexity
from saccade.tasks.answers import Answer
from saccade.tasks.base import Example
from saccade.tasks.reading_texts import RECENT, Tokens

CLASSES = (1, 10, 100, 1000)
"""The lowest number of occurrences in the training data of each class of tokens but the first."""


@dataclass(frozen=True)
class Scored(Answer):
    """How likely a text is, and each of its tokens."""

    read: Tokens | None = None


def measured(tokeniser: Tokeniser, example: Example, read: Tokens) -> Scored:
    """The log-probability of a text whose tokens were read, including its end."""
    log_prob, tokens = float(read.log_probs.sum()), len(read.ids)
    text = tokeniser.normalise(example["text"])
    # The end of a text is predicted as well: it counts as a word, and as the byte of a newline.
    unknown = int((read.ids == UNK).sum())
    counted = Read(log_prob, tokens, int(read.right.sum()), len(text.split()) + 1, len(text.encode()) + 1, unknown)
    return Scored(log_prob, log_prob / max(1, tokens), details=counted._asdict(), read=read)


def word_scores(tokeniser: Tokeniser, text: str, read: Tokens) -> list[tuple[str, float]]:
    """Each word of a text with its log-probability, summed over its pieces; and that of the end, named ""."""
    each = read.log_probs.tolist()
    words = tokeniser.normalise(text).split()
    places = [group for group in tokeniser.words(text) if group]
    if len(places) != len(words):  # letters that are not written with spaces
        words, places = tokeniser.parts(text), [[place] for place in range(len(each) - 1)]
    ends = [group[-1] + 1 for group in places]  # pieces of white space belong to the word, or the end, after them
    sums = [sum(each[start:end]) for start, end in pairwise([0, *ends, len(each)])]
    return list(zip([*words, ""], sums, strict=True))


def by_frequency(counts: Sequence[int], read: Sequence[Tokens | None]) -> Table:
    """The perplexity of tokens by their frequency in the training data, and of those that repeat a recent one.

    Args:
        counts: how often the training data has each token.
        read: the tokens of some texts.
    """
    whole = Tokens.joined([each for each in read if each is not None])
    known = torch.tensor(counts)[whole.ids]
    edges = (0, *CLASSES, None)
    rows: dict[str, list[float]] = {}
    for low, high in pairwise(edges):
        inside = (known >= (low or 0)) & (known < math.inf if high is None else known < high)
        if bool(inside.any()):
            name = f"{low:,} or more" if high is None else "never" if high == 1 else f"{low:,} to {high - 1:,}"
            rows[name] = _row(whole, inside)
    rows["all"] = _row(whole, torch.ones_like(whole.repeated))
    title = f"Perplexity by occurrences in the training data; repeated: one of the {RECENT} tokens before"
    return Table("frequency", title, ["tokens", "perplexity", "repeated", "if repeated", "if new"], rows)


def _row(read: Tokens, inside: Tensor) -> list[float]:
    def mean(chosen: Tensor) -> float:
        return perplexity(-float(read.log_probs[chosen].sum()), int(chosen.sum()))

    old, new = inside & read.repeated, inside & ~read.repeated
    return [int(inside.sum()), mean(inside), int(old.sum()), mean(old), mean(new)]


def read_counts(path: Path, size: int) -> list[int]:
    """The counts that a task saved, one for each token."""
    found: Any = read_json(path)
    right = isinstance(found, list) and all(type(each) is int and 0 <= each < 2**53 for each in found)
    if not right or len(found) not in (0, size):
        raise ArtifactError(f"{path} is damaged: it must be a list of {size:,} counts, 0 or more.")
    counts: list[int] = found
    return counts
