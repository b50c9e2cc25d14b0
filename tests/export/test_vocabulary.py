"""The runner's vocabulary splits and joins texts as the tokeniser that it was saved from."""

import json

import pytest

from saccade.data.tokenisers import tokenisers
from saccade.data.tokenisers.wordpiece import WordPiece
from saccade.export.runner.text import KINDS, Vocabulary
from saccade.export.runner.wordpieces import Splitter

TRAINING = [
    "The dog (a big one) didn't bark; it ran, ran, ran!",
    "Größe und Maß: 3,5 % von 1.000 — «echt»?",
    "le café d'été, à côté de l'hôtel",
    "snake_case and e-mail@example.org $5.00",
]
TEXTS = [
    *TRAINING,
    "",
    "   ",
    "unseen: ☃ 漢字 ▁ ￭ \u0301x",
    "THE DOG\tdidn't\nRUN ...",
    "a_b __ -- (!?) “quoted”",
    "[CLS] dog [MASK] ##ing",
    "run <V;PST> <s> <x> <> a<b>",
    "x" * 120,
]


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_texts_become_the_same_ids_and_back(kind, lowercase):
    options = {"vocab_size": 90} if kind in ("bpe", "unigram") else {"min_frequency": 1}
    tokeniser = tokenisers.create(kind, lowercase=lowercase, **options).fit(TRAINING * 3)
    vocabulary = Vocabulary(json.loads(tokeniser.dumps()))
    for text in TEXTS:
        ids = tokeniser.encode(text)
        assert vocabulary.encode(text) == ids, text
        assert vocabulary.decode(ids) == tokeniser.decode(ids)
        assert [vocabulary.pieces[number] for number in ids] == tokeniser.pieces(ids)


@pytest.mark.parametrize("options", [{}, {"lowercase": False}, {"strip_accents": False}, {"split_chinese": False}])
def test_wordpieces_become_the_same_ids(options):
    tokeniser = WordPiece(vocab_size=120, **options).fit(TRAINING * 3)
    vocabulary = Splitter(json.loads(tokeniser.dumps()))
    for text in [*TEXTS, "ΟΔΟΣ Ünï\u0308 \x0b\x1c\u00ad x\u200by", "日本 Ⅻ İstanbul ŉ"]:
        assert vocabulary.split(text) == list(zip(*tokeniser.split(text), strict=True)), text
