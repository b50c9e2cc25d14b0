"""Lexicons: word translations, as a file and as a table of ids."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from saccade.artifacts import write_file
from saccade.data.errors import DataError
from saccade.data.readers.files import check_file
from saccade.data.readers.lines import read_lines
from saccade.data.special import EOS, PAD, UNK
from saccade.data.tokenisers import Tokeniser

Lexicon = dict[str, dict[str, float]]
"""For each source word p(target word | source word); the rest, up to 1, belongs to unknown words."""


class LexiconTable(NamedTuple):
    """A lexicon in ids.

    Args:
        words: (source vocabulary, entries), target ids.
        probabilities: (source vocabulary, entries), each row sums to 1; 0 where there is no entry.
        known: how many source ids have a translation.
    """

    words: NDArray[np.int64]
    probabilities: NDArray[np.float32]
    known: int


def read_lexicon(path: str | os.PathLike[str]) -> Lexicon:
    """A lexicon from a file: source word, target word and probability in each line, separated by tabs.

    Without probabilities, the translations of a word are equally likely.
    """
    file = check_file(os.fspath(path))
    weights: dict[str, dict[str, float | None]] = {}
    for number, line in enumerate(read_lines(file), start=1):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) not in (2, 3) or not all(cells):
            raise DataError(
                f"{file}, line {number}: a line of a lexicon is a source word, a tab, a target word, and optionally a "
                f"tab and a probability, got {line!r:.60}."
            )
        weights.setdefault(cells[0], {})[cells[1]] = _probability(cells[2], file, number) if len(cells) == 3 else None
    return {source: _completed(targets) for source, targets in weights.items()}


def write_lexicon(path: str | os.PathLike[str], lexicon: Lexicon) -> None:
    """Writes the file that `read_lexicon` reads, words in alphabetical order, the likeliest translation first."""
    lines = [
        f"{source}\t{target}\t{probability:.6g}\n"
        for source, targets in sorted(lexicon.items())
        for target, probability in sorted(targets.items(), key=lambda each: (-each[1], each[0]))
    ]
    write_file(path, "".join(lines))


def kept(entries: Iterable[tuple[str, str, float]], *, top: int, least: float) -> Lexicon:
    """The `top` likeliest translations of each word, those of at least probability `least`."""
    found: Lexicon = {}
    for source, target, probability in entries:
        if probability >= least:
            found.setdefault(source, {})[target] = float(probability)
    return {
        source: dict(sorted(targets.items(), key=lambda each: (-each[1], each[0]))[:top])
        for source, targets in found.items()
    }


def from_counts(counts: Mapping[tuple[str, str], int], *, top: int, least: float) -> Lexicon:
    """Relative frequencies of linked words."""
    totals: dict[str, int] = {}
    for (source, _), count in counts.items():
        totals[source] = totals.get(source, 0) + count
    entries = ((source, target, count / totals[source]) for (source, target), count in counts.items())
    return kept(entries, top=top, least=least)


def lexicon_table(lexicon: Lexicon, source: Tokeniser, target: Tokeniser, entries: int) -> LexiconTable:
    """The lexicon of words that are single tokens of both vocabularies.

    The last entry of each word is the unknown word, with the remaining probability. A word without translations has
    only this entry; the end translates to the end; padding translates to nothing.

    Args:
        lexicon: of words.
        source, target: the tokenisers of both sides.
        entries: the maximum number of translations of a word.
    """
    words = np.full((source.size, entries + 1), UNK, dtype=np.int64)
    probabilities = np.zeros((source.size, entries + 1), dtype=np.float32)
    found: dict[int, dict[int, float]] = {}  # words that are spelt differently may be one token
    for word, targets in lexicon.items():
        token = _single(word, source)
        for other, probability in targets.items() if token is not None else ():
            if token is not None and (id := _single(other, target)) is not None:
                of_token = found.setdefault(token, {})
                of_token[id] = of_token.get(id, 0.0) + probability
    for token, of_token in found.items():
        total = max(1.0, sum(of_token.values()))
        pairs = sorted(((id, p / total) for id, p in of_token.items()), key=lambda each: -each[1])[:entries]
        for place, (id, probability) in enumerate(pairs):
            words[token, place], probabilities[token, place] = id, probability
    probabilities[:, -1] = np.maximum(0.0, 1.0 - probabilities.sum(1))
    words[EOS, -1], words[PAD] = EOS, PAD
    probabilities[PAD] = 0.0
    return LexiconTable(words, probabilities, len(found))


def _single(word: str, tokeniser: Tokeniser) -> int | None:
    ids = tokeniser.encode(word)
    return ids[0] if len(ids) == 1 and ids[0] != UNK else None


def _probability(text: str, file: Path, number: int) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0.0 < found <= 1.0:
        raise DataError(f"{file}, line {number}: a probability is above 0 and at most 1, got {text!r:.40}.")
    return found


def _completed(targets: Mapping[str, float | None]) -> dict[str, float]:
    """Translations without a probability share what the others leave; the sum never exceeds 1."""
    given = sum(p for p in targets.values() if p is not None)
    open_ones = sum(p is None for p in targets.values())
    rest = max(0.0, 1.0 - given) / open_ones if open_ones else 0.0
    found = {word: rest if p is None else p for word, p in targets.items()}
    total = sum(found.values())
    return {word: p / max(1.0, total) for word, p in found.items() if p > 0.0}
