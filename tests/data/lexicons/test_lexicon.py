"""Lexicons as files and as tables of ids."""

import numpy as np
import pytest

from saccade.data.errors import DataError
from saccade.data.lexicons import from_counts, lexicon_table, read_lexicon, write_lexicon
from saccade.data.special import EOS, PAD, UNK
from saccade.data.tokenisers import BpeTokeniser, WordTokeniser


def test_a_file_is_read_as_it_was_written(tmp_path):
    lexicon = {"Hund": {"dog": 0.75, "hound": 0.125}, "das": {"the": 0.5, "that": 0.5}}
    write_lexicon(tmp_path / "lexicon.tsv", lexicon)
    assert (tmp_path / "lexicon.tsv").read_text().splitlines()[0] == "Hund\tdog\t0.75"
    assert read_lexicon(tmp_path / "lexicon.tsv") == lexicon


def test_two_columns_are_equally_likely_and_too_much_is_scaled(tmp_path):
    (tmp_path / "words.tsv").write_text(
        "Haus\thouse\nHaus\thome\n\nrot\tred\t0.9\nrot\tcrimson\t0.9\nBuch\tbook\t0.6\n"
    )
    found = read_lexicon(tmp_path / "words.tsv")
    assert found == {"Haus": {"house": 0.5, "home": 0.5}, "rot": {"red": 0.5, "crimson": 0.5}, "Buch": {"book": 0.6}}


@pytest.mark.parametrize(
    ("line", "problem"), [("Haus", "a source word, a tab"), ("a\tb\t1.5", "at most 1"), ("a\tb\tx", "at most 1")]
)
def test_a_bad_line_is_named(tmp_path, line, problem):
    (tmp_path / "bad.tsv").write_text(f"a\tb\n{line}\n")
    with pytest.raises(DataError, match=rf"bad\.tsv, line 2: .*{problem}"):
        read_lexicon(tmp_path / "bad.tsv")


def test_counts_become_shares():
    found = from_counts({("a", "x"): 3, ("a", "y"): 1, ("b", "y"): 2, ("a", "z"): 1}, top=2, least=0.1)
    assert found == {"a": {"x": 0.6, "y": 0.2}, "b": {"y": 1.0}}


def test_a_table_has_what_is_left_for_the_unknown_word():
    source, target = WordTokeniser().fit(["das Haus rot"]), WordTokeniser().fit(["the house red"])
    lexicon = {"Haus": {"house": 0.5, "home": 0.3, "red": 0.1}, "das": {"the": 1.0}, "Buch": {"book": 1.0}}
    table = lexicon_table(lexicon, source, target, 2)
    assert table.words.shape == (source.size, 3)
    assert table.known == 2
    row = source.id_of("Haus")
    assert table.words[row].tolist() == [target.id_of("house"), target.id_of("red"), UNK]
    assert table.probabilities[row].tolist() == pytest.approx([0.5, 0.1, 0.4])
    assert table.probabilities[source.id_of("rot")].tolist() == [0.0, 0.0, 1.0]
    assert table.words[EOS, -1] == EOS
    sums = table.probabilities.sum(1)
    assert sums[PAD] == 0.0
    np.testing.assert_allclose(np.delete(sums, PAD), 1.0)


def test_words_that_are_single_subwords_are_looked_up():
    tokeniser = BpeTokeniser(vocab_size=30).fit(["the cat", "the dog"] * 5)
    table = lexicon_table({"the": {"cat": 1.0}, "then": {"cat": 1.0}}, tokeniser, tokeniser, 1)
    assert table.known == 1
    (the,), (cat,) = tokeniser.encode("the"), tokeniser.encode("cat")
    assert table.words[the, 0] == cat


def test_words_that_are_one_token_share_a_row():
    tokeniser = WordTokeniser(lowercase=True).fit(["the a b c d"])
    lexicon = {"The": {"a": 0.3, "b": 0.3, "c": 0.3}, "the": {"d": 0.9}}
    table = lexicon_table(lexicon, tokeniser, tokeniser, 4)
    row = tokeniser.encode("the")[0]
    assert table.probabilities[row].sum() == pytest.approx(1.0)
    assert dict(zip(table.words[row].tolist(), table.probabilities[row].tolist(), strict=True)) == pytest.approx(
        {**{tokeniser.encode(word)[0]: 0.3 / 1.8 for word in "abc"}, tokeniser.encode("d")[0]: 0.5, UNK: 0.0}
    )
    assert table.known == 1
