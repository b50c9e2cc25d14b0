"""Stretches of documents, and the pairs that are made of them."""

import itertools
import random

import pytest
import torch

from saccade.tasks.sentence_pairs import chunks, number_of, pairs, room

MOST = 29


def document(number, sentences):
    """Tokens that say which document, sentence and place they come from."""
    return [[10_000 * number + 100 * s + place for place in range(length)] for s, length in enumerate(sentences)]


def corpus(count=400):
    chance = random.Random(5)
    return [document(n, [chance.randint(1, 13) for _ in range(chance.randint(1, 9))]) for n in range(1, count)]


def cut(documents, **arguments):
    usual = {"most": MOST, "short_share": 0.1, **arguments}
    return [chunks(sentences, document=n, **usual) for n, sentences in enumerate(documents, start=1)]


def test_chunks_are_whole_sentences_that_fill_the_room():
    documents = corpus()
    for sentences, found in zip(documents, cut(documents, short_share=0.0), strict=True):
        assert [token for chunk in found for token in chunk["ids"]] == [t for ids in sentences for t in ids]
        assert [n for chunk in found for n in chunk["lengths"]] == [len(ids) for ids in sentences]
        assert all(len(chunk["ids"]) == sum(chunk["lengths"]) <= MOST for chunk in found)
        for one, after in itertools.pairwise(found):
            assert len(one["ids"]) + after["lengths"][0] > MOST  # nothing more would have fitted


def test_some_documents_are_cut_shorter():
    long = [document(n, [2] * 60) for n in range(1, 2000)]
    shorter = [found for found in cut(long) if len(found[0]["ids"]) < MOST - 2]
    # 10 % have a target from 2 to 29; with 28 and 29, whole sentences of 2 fill as much as in other documents.
    assert len(shorter) / len(long) == pytest.approx(0.1 * 26 / 28, abs=0.02)
    assert {len(found[0]["ids"]) for found in shorter} == set(range(2, 27, 2))


def test_long_sentences_are_cut_up():
    (found,) = cut([document(1, [100])], short_share=0.0)
    assert [n for chunk in found for n in chunk["lengths"]] == [14] * 7 + [2]


def source(ids):
    """The document of each token, and its place in the document."""
    return {token // 10_000 for token in ids}


def test_half_of_the_pairs_belong_together():
    rows = [chunk for found in cut(corpus(1500)) for chunk in found]
    several = [row for row in rows if len(row["lengths"]) > 1]
    found = pairs(rows, most=MOST, generator=torch.Generator().manual_seed(3))
    assert len(found) == len(rows)
    follow = 0
    for row, (one, other, follows) in zip(rows, found, strict=True):
        assert source(one) == {row["document"]}
        assert one
        assert other
        assert len(one) + len(other) <= room(row, MOST) <= MOST
        assert (source(other) == {row["document"]}) is follows
        if follows:
            assert one[-1] < other[0]
            follow += 1
        if len(row["lengths"]) == 1:
            assert not follows
    assert follow / len(several) == pytest.approx(0.5, abs=0.03)


def test_what_follows_is_the_rest_of_the_chunk():
    row = chunks(document(1, [3, 5, 7]), document=1, most=MOST, short_share=0.0)
    for seed in range(20):
        (pair,) = pairs(row, most=MOST, generator=torch.Generator().manual_seed(seed))  # no other document
        assert pair.follows
        assert pair.one + pair.other == row[0]["ids"]
        assert len(pair.one) in (3, 8)
    alone = chunks(document(1, [3]), document=1, most=MOST, short_share=0.0)
    assert pairs(alone, most=MOST, generator=torch.Generator())[0].other == []


def test_too_long_pairs_lose_tokens_on_both_sides():
    rows = [*chunks(document(1, [14, 14]), document=1, most=28, short_share=0.0)]
    rows += chunks(document(2, [14] * 2), document=2, most=28, short_share=0.0)
    firsts = set()
    for seed in range(200):
        one, other, _ = pairs(rows, most=20, generator=torch.Generator().manual_seed(seed))[0]
        assert (len(one), len(other)) == (10, 10)
        assert one == list(range(one[0], one[0] + 10))
        firsts.add(one[0] % 100)
    assert firsts >= {1, 2, 3}  # four tokens go, each from the front or the back


def test_documents_are_told_apart():
    assert number_of("a") != number_of("b")
    assert number_of("a") == number_of("a") < 2**56
