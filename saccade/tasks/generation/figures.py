"""Figures of written texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from saccade.data.tokenisers import Tokeniser
from saccade.evaluation import (
    ERROR_RATES,
    HIGHER_IS_BETTER,
    METRICS,
    OF_TOKENS,
    Figure,
    Table,
    edits_table,
    score_texts,
)
from saccade.evaluation.text import Tokenisation
from saccade.tasks.answers import Answer
from saccade.tasks.generation.rare_words import unknown_words
from saccade.tasks.pointing import POINTING

AER = "aer"
UNKNOWN_WORDS = "unknown_words"

KNOWN: Mapping[str, bool] = HIGHER_IS_BETTER | {AER: False, UNKNOWN_WORDS: True} | dict.fromkeys(POINTING, True)
"""All figures, and whether higher is better."""

OF_VOCABULARY = (*OF_TOKENS, UNKNOWN_WORDS)
"""Figures that are not comparable between vocabularies."""


def text_figures(
    answers: Sequence[Answer],
    wanted: Sequence[Sequence[str]],
    tokens: Callable[[], Sequence[Sequence[int]]],
    metrics: Iterable[str],
    *,
    tokeniser: Tokeniser,
    tokenize: Tokenisation,
) -> dict[str, Figure]:
    """The figures that need nothing but the texts.

    Args:
        answers: what was written.
        wanted: the right texts for each, as the tokeniser normalises them.
        tokens: computes the ids of the first right text for each, without the end.
        metrics: names of figures; those that need a model are left out.
        tokeniser: of the target.
        tokenize: how sacrebleu splits texts.
    """
    names = [name for name in metrics if name != AER and name not in POINTING]
    texts = [answer.text for answer in answers]
    figures = score_texts(texts, wanted, [name for name in names if name != UNKNOWN_WORDS], tokenize=tokenize)
    if UNKNOWN_WORDS in names:
        figures[UNKNOWN_WORDS] = unknown_words(tokeniser, texts, [several[0] for several in wanted])
    for name in OF_TOKENS:
        if name in figures:
            figures[name] = METRICS[name]([getattr(a, "tokens", []) for a in answers], tokens())
    return {name: figures[name] for name in names}


def edit_tables(answers: Sequence[Answer], wanted: Sequence[Sequence[str]], metrics: Iterable[str]) -> list[Table]:
    """What was inserted, deleted and replaced, if an error rate is among the figures."""
    units = list(dict.fromkeys(ERROR_RATES[name] for name in metrics if name in ERROR_RATES))
    return [edits_table([answer.text for answer in answers], wanted, units)] if units else []
