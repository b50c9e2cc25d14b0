"""Sentences of texts with abbreviations, quotations, stray marks and other scripts."""

import pytest

from saccade.data.sentences import LONG, split_sentences

pytest.importorskip("sentencex")


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Dr. Smith paid $3.50. He left.", ["Dr. Smith paid $3.50.", "He left."]),
        ('"Why?" she asked. "No!" Then silence...', ['"Why?" she asked.', '"No!"', "Then silence..."]),
        ("all in lower case. and again! ok", ["all in lower case.", "and again!", "ok"]),
        ("a line\nthat goes on. Next", ["a line\nthat goes on.", "Next"]),
        ("A title\n\nThe text.", ["A title", "The text."]),
        ("word", ["word"]),
        ("", []),
        (" \n\t ", []),
        ("C'est l'été. A\u00a0. B\u2028. Fin.", ["C'est l'été.", "A . B . Fin."]),
    ],
)
def test_english(text, sentences):
    assert split_sentences(text) == sentences


def test_other_languages():
    assert split_sentences("これは文です。次の文です。", "ja") == ["これは文です。", "次の文です。"]
    assert split_sentences("Das ist z.B. ein Satz. Ende.", "de") == ["Das ist z.B. ein Satz.", "Ende."]


def test_a_stray_quotation_mark_does_not_join_half_a_text():
    sentence = "It is a rather good one, and I would buy it again any time. "
    text = f'The 5" screen came first. {sentence * 7}The 7" one is better.'
    found = split_sentences(text)
    assert len(found) == 9
    assert " ".join(found) == text
    quoted = 'He said "It is over. Go home." and left.'
    assert split_sentences(quoted) == [quoted]  # a quotation of usual length stays whole


def test_nothing_is_lost():
    text = " ".join(['Well (so. "he. said', "e.g. Mr. X. 3.5% (really.)", "word " * (2 * LONG)] * 3)
    assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())
