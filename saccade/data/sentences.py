"""Texts split into sentences."""

from __future__ import annotations

import re

from saccade.data.extra import required

LONG = 60
"""A sentence with more words is suspicious."""

SPACE = re.compile(r"[^\S\n]")
MARKS = re.compile(r'["“”„«»()\[\]{}]')


def split_sentences(text: str, language: str = "en") -> list[str]:
    """The sentences of a text, without surrounding white space; blank lines end a sentence, line breaks do not.

    Quoted and bracketed passages stay whole. If that makes a sentence of more than 60 words, it is split again ignoring
    such marks: a stray one, such as an inch sign, would otherwise join half a text.

    Args:
        text: any.
        language: its ISO 639 code, which decides about abbreviations and other marks.
    """
    segment = required("sentencex").segment
    found: list[str] = []
    for sentence in segment(language, SPACE.sub(" ", text)):  # rare kinds of white space confuse it
        if len(sentence.split()) <= LONG:
            found.append(sentence.strip())
            continue
        start = 0
        for part in segment(language, MARKS.sub(" ", sentence)):
            found.append(sentence[start : start + len(part)].strip())
            start += len(part)
    return [sentence for sentence in found if sentence]
