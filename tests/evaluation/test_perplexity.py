import math

import pytest

from saccade.evaluation.perplexity import Read, score_reading

# Two texts whose tokens have these probabilities, of which two were the likeliest.
FIRST, SECOND = [0.5, 0.25, 0.1], [0.2, 0.9]
TEXTS = [
    Read(math.log(math.prod(FIRST)), 3, 1, words=2, bytes=11),
    Read(math.log(math.prod(SECOND)), 2, 1, words=1, bytes=6),
]


def test_figures_of_several_texts_are_those_of_all_their_tokens() -> None:
    found = {n: f.value for n, f in score_reading(TEXTS, ["perplexity", "word_perplexity", "bits_per_byte"]).items()}
    product = math.prod([*FIRST, *SECOND])
    assert found["perplexity"] == pytest.approx(product ** (-1 / 5))
    assert found["word_perplexity"] == pytest.approx(product ** (-1 / 3))
    assert found["bits_per_byte"] == pytest.approx(-math.log2(product) / 17)
    assert score_reading(TEXTS, ["accuracy"])["accuracy"].value == pytest.approx(40.0)


def test_a_uniform_model_is_as_perplexed_as_its_vocabulary_is_large() -> None:
    read = Read(-7 * math.log(23), 7, 0, words=7, bytes=7)
    assert score_reading([read], ["perplexity"])["perplexity"].value == pytest.approx(23.0)


def test_the_impossible_is_infinite_and_nothing_is_nan() -> None:
    assert score_reading([Read(-1e6, 2, 0, 1, 5)], ["perplexity"])["perplexity"].value == math.inf
    nothing = score_reading([Read(0.0, 0, 0, 0, 0)], ["perplexity", "word_perplexity", "bits_per_byte", "accuracy"])
    assert all(math.isnan(figure.value) for figure in nothing.values())
