"""Figures of texts, by hand and against sacrebleu's own command line."""

import math
import subprocess
import sys
import warnings

import pytest
import sacrebleu

from saccade.evaluation import (
    HIGHER_IS_BETTER,
    METRICS,
    bleu,
    by_length,
    character_error_rate,
    chrf,
    exact_match,
    length_to_failure,
    score_texts,
    ter,
    token_accuracy,
    word_error_rate,
)
from saccade.evaluation.text import edits_table

WANTED = ["the cat sat on the mat .", "two dogs run in the snow .", "a man ."]
PREDICTED = ["the cat sat on a mat .", "two dogs run in the snow .", "man ."]


def test_bleu_by_hand() -> None:
    # One pair: matches of 1- to 4-grams 6/7, 4/6, 2/5, 1/4; equal lengths, so no brevity penalty.
    figure = bleu(PREDICTED[:1], WANTED[:1], tokenize="none")
    expected = 100 * (6 / 7 * 4 / 6 * 2 / 5 * 1 / 4) ** 0.25
    assert math.isclose(figure.value, expected)
    assert "tok:none" in figure.signature
    assert "version:" in figure.signature


def test_equal_to_sacrebleu_on_the_command_line(tmp_path) -> None:
    (tmp_path / "wanted").write_text("\n".join(WANTED) + "\n")
    (tmp_path / "predicted").write_text("\n".join(PREDICTED) + "\n")
    command = [sys.executable, "-m", "sacrebleu", str(tmp_path / "wanted"), "-i", str(tmp_path / "predicted")]
    options = ["-m", "bleu", "chrf", "ter", "-b", "-w", "6"]
    run = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
    printed = [float(number) for number in run.stdout.replace("[", " ").replace("]", " ").replace(",", " ").split()]
    ours = [bleu(PREDICTED, WANTED).value, chrf(PREDICTED, WANTED).value, ter(PREDICTED, WANTED).value]
    assert ours == pytest.approx(printed, abs=1e-5)


def test_counted_figures() -> None:
    assert exact_match(PREDICTED, WANTED).value == pytest.approx(100 / 3)
    # "the" for "a" costs 3 edits ("t", "h", and "e" for "a"); "a " is missing.
    assert character_error_rate(PREDICTED, WANTED).value == pytest.approx(100 * 5 / sum(map(len, WANTED)))
    split = [[text.split() for text in texts] for texts in (PREDICTED, WANTED)]
    assert token_accuracy(*split).value == pytest.approx(100 * (6 + 7 + 0) / 17)


@pytest.mark.parametrize(
    ("predicted", "wanted", "right", "of"),
    [
        ("abc", "abc", 4, 4),
        ("abcd", "abc", 3, 4),
        ("ab", "abc", 2, 4),
        ("xbc", "abc", 0, 4),
        ("axc", "abc", 1, 4),
        ("", "abc", 0, 4),
        ("", "", 1, 1),
        ("a", "", 0, 1),
    ],
)
def test_length_to_failure_counts_the_end(predicted, wanted, right, of) -> None:
    assert length_to_failure([predicted], [wanted]).value == pytest.approx(100 * right / of)


def test_length_to_failure_is_a_mean_over_texts() -> None:
    assert length_to_failure(["ab", "x"], ["ab", "abcdefgh"]).value == pytest.approx(50.0)
    words = score_texts(PREDICTED, WANTED, ["length_to_failure"])["length_to_failure"].value
    assert words == pytest.approx(100 * (4 / 8 + 1 + 0) / 3)


def test_perfect_predictions_have_perfect_figures() -> None:
    without_top = ("cider", "distinct_1", "distinct_2")  # how high they can be depends on the texts
    names = [name for name in METRICS if name not in without_top]
    for name, figure in score_texts(WANTED, WANTED, names).items():
        assert figure.value == pytest.approx(100.0 if HIGHER_IS_BETTER[name] else 0.0)
        assert figure.signature


def test_wrong_use_is_named() -> None:
    with pytest.raises(ValueError, match=r"'blue'.*Did you mean 'bleu'"):
        score_texts(WANTED, WANTED, ["blue"])
    with pytest.raises(ValueError, match=r"2 predicted texts .* 3 references"):
        exact_match(WANTED[:2], WANTED)
    with pytest.raises(ValueError, match="no texts"):
        bleu([], [])
    with pytest.raises(TypeError, match="lists of texts"):
        chrf("a", "b")


def test_length_bins_hold_every_example_once() -> None:
    lengths = [1, 7, 8, 14, 15, 30]

    def score(numbers):
        return {"exact_match": exact_match([str(number) for number in numbers], ["0"] * len(numbers))}

    bins = by_length(lengths, score, width=7)
    assert [(b.low, b.high, b.examples) for b in bins] == [(1, 7, 2), (8, 14, 2), (15, 21, 1), (29, 35, 1)]
    assert [b.figures["exact_match"].value for b in bins] == [50.0, 0.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="width"):
        by_length(lengths, lambda numbers: {}, width=0)


def test_bleu_of_short_texts_counts_the_n_grams_that_there_are() -> None:
    short = ["a b", "c", "d e"]
    assert bleu(short, short).value == pytest.approx(100.0)
    assert "eff:yes" in bleu(short, short).signature
    assert 0.0 < bleu(["a b", "d", "d e"], short).value < 100.0
    long = ["a b c d", "c"]
    assert "eff:no" in bleu(["x", "y"], long).signature


def test_several_references_count_as_sacrebleu_counts_them():
    predicted = ["the cat sat on the mat today", "a dog runs in the park"]
    wanted = [["a cat sat on the mat today", "the cat was on the mat"], "a dog runs in a park"]
    expected = sacrebleu.metrics.BLEU().corpus_score(
        predicted, [["a cat sat on the mat today", "a dog runs in a park"], ["the cat was on the mat", None]]
    )
    assert bleu(predicted, wanted).value == pytest.approx(expected.score)
    assert bleu(predicted, wanted).value > bleu(predicted, [wanted[0][0], wanted[1]]).value
    assert exact_match(["b", "c"], [["a", "b"], "d"]).value == 50.0
    assert score_texts(["b"], [["a", "b"]], ["exact_match", "cer"])["cer"].value == 0.0


def test_word_errors_are_edits_per_wanted_word():
    assert word_error_rate(["a b c d"], ["a x c"]).value == pytest.approx(100 * 2 / 3)  # a substitution, an insertion
    assert word_error_rate(["", "a"], ["one two", "a"]).value == pytest.approx(100 * 2 / 3)
    assert word_error_rate(["a b"], [["c d e", "a b c"]]).value == pytest.approx(100 / 3)  # against the nearer one


def test_error_rates_say_what_kind_of_errors_they_count():
    predicted, wanted = ["a b c d", "", "f"], ["a x c", "one two", "f"]
    figures = score_texts(predicted, wanted, ["wer", "cer"])
    assert figures["wer"].value == word_error_rate(predicted, wanted).value
    counted = "1 substitutions, 2 deletions, 1 insertions in 6 words"
    assert figures["wer"].signature == f"edits per 100 wanted words: {counted}"
    found = edits_table(predicted, wanted, ["words", "characters"])
    assert found.rows["words"] == [1, 2, 1, 6, pytest.approx(100 * 4 / 6)]
    assert found.rows["characters"] == [1, 7, 2, 13, pytest.approx(100 * 10 / 13)]
    assert not HIGHER_IS_BETTER["wer"]


def test_tokenised_texts_get_one_warning_and_not_that_of_sacrebleu(caplog, capfd):
    texts = [f"a house number {number} ." for number in range(131)]
    with pytest.warns(UserWarning, match=r"Most of the texts end in ' \.'.*task\.bleu_tokenize to none"):
        found = bleu(texts, texts)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert bleu(texts, texts, tokenize="none").value == pytest.approx(found.value)
        bleu([text.replace(" .", ".") for text in texts], texts)
    assert not caplog.records
    assert capfd.readouterr().err == ""
