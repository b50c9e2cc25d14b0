"""Out-of-vocabulary words, and how many of them a model writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from saccade.data.special import UNK
from saccade.data.tokenisers import Tokeniser
from saccade.evaluation import Figure


def unknown_words(tokeniser: Tokeniser, predicted: Sequence[str], wanted: Sequence[str]) -> Figure:
    """The percentage of the references' out-of-vocabulary words that the predictions contain, counting repetitions.

    Words that a subword vocabulary splits count as outside.
    """
    right = total = 0
    for text, reference in zip(predicted, wanted, strict=True):
        missing = Counter(unit for unit, _ in tokeniser.units(reference) if tokeniser.id_of(unit) == UNK)
        said = Counter(unit for unit, _ in tokeniser.units(text))
        total += missing.total()
        right += (missing & said).total()
    note = f"% of the {total:,} words outside the vocabulary that were written"
    return Figure(100.0 * right / total if total else 0.0, note)
