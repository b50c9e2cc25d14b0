"""Error rates and their parts against jiwer's."""

import random

import pytest

from saccade.evaluation import character_error_rate, word_error_rate
from saccade.evaluation.edits import Edits, count_edits
from saccade.evaluation.text import total_edits

jiwer = pytest.importorskip("jiwer")


def texts(seed: int, count: int, words: int) -> list[str]:
    choices = random.Random(seed)
    return [" ".join(choices.choices(["a", "b", "ab", "ba", "c"], k=choices.randint(1, words))) for _ in range(count)]


@pytest.mark.parametrize("words", [3, 17])
def test_as_jiwer(words) -> None:
    wanted, predicted = texts(1, 53, words), [*texts(2, 52, words), ""]
    for unit, process in (
        ("words", jiwer.process_words),
        ("characters", jiwer.process_characters),
    ):
        theirs = process(wanted, predicted)
        found, total = total_edits(predicted, wanted, unit)
        assert found == Edits(theirs.substitutions, theirs.deletions, theirs.insertions)
        assert total == theirs.hits + theirs.substitutions + theirs.deletions
    assert word_error_rate(predicted, wanted).value == pytest.approx(100 * jiwer.wer(wanted, predicted))
    assert character_error_rate(predicted, wanted).value == pytest.approx(100 * jiwer.cer(wanted, predicted))


def test_each_pair_divides_as_in_jiwer() -> None:
    """Of several shortest ways, the same one is counted."""
    choices = random.Random(3)
    for _ in range(300):
        wanted, written = ("".join(choices.choices("abc", k=choices.randint(1, 9))) for _ in range(2))
        theirs = jiwer.process_characters(wanted, written)
        assert count_edits(wanted, written) == (theirs.substitutions, theirs.deletions, theirs.insertions)
