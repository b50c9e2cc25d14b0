"""Baselines for attention: the diagonal, and an aligner."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from verses import Verse

from saccade.interpretation.alignments import Link, read_alignments, symmetrise


def diagonal(verse: Verse) -> list[Link]:
    """Links each English word to the Greek word at the same relative position in the verse."""
    scale = (len(verse.greek) - 1) / max(1, len(verse.english) - 1)
    return [(round(place * scale), place) for place in range(len(verse.english))]


def eflomal_links(verses: Sequence[Verse]) -> dict[str, list[list[Link]]] | None:
    """Eflomal's links in both directions and combined, aligning all verses together; None if it is not installed."""
    try:
        import eflomal
    except ModuleNotFoundError:
        return None
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("forward", "backward")]
        eflomal.Aligner().align(
            _lines(verse.greek for verse in verses),
            _lines(verse.english for verse in verses),
            links_filename_fwd=str(files[0]),
            links_filename_rev=str(files[1]),
        )
        forward, backward = ([sorted(found.sure) for found in read_alignments(file)] for file in files)
    joined = [symmetrise(there, back) for there, back in zip(forward, backward, strict=True)]
    union = [symmetrise(there, back, "union") for there, back in zip(forward, backward, strict=True)]
    return {"Greek to English": forward, "English to Greek": backward, "grow-diag-final-and": joined, "union": union}


def _lines(texts: Iterable[Sequence[str]]) -> list[str]:
    return [f"{' '.join(words)}\n" for words in texts]
