"""Skip-gram with negative sampling."""

import random
from collections import Counter

import numpy as np
import pytest
import torch

from saccade.data.vectors import Word2Vec, vectors
from saccade.data.vectors.skip_gram import gather, keep_probabilities, neighbours, noise, train_skip_gram


def test_rare_and_special_ids_are_left_out():
    corpus = gather([[0, 4, 5, 4], [], [5, 6, 4]], 9, first=4, min_count=2)
    assert corpus.ids.tolist() == [4, 5, 4, 5, 4]
    assert corpus.texts.tolist() == [0, 0, 0, 2, 2]
    assert corpus.counts.tolist() == [0, 0, 0, 0, 3, 2, 0, 0, 0]


def test_frequent_words_are_kept_less_often():
    counts = np.array([0, 1, 30, 969])
    kept = keep_probabilities(counts, 1e-2)
    for count, probability in zip(counts[1:], kept[1:], strict=True):
        share = count / 1000
        assert probability == pytest.approx(min(1.0, ((share / 1e-2) ** 0.5 + 1) * 1e-2 / share))
    assert kept[1] == 1.0
    assert keep_probabilities(counts, 0.0).tolist() == [1.0] * 4


def test_negatives_follow_the_counts_to_three_quarters():
    counts = np.array([0, 1, 16, 81])
    q = noise(counts)
    assert q.tolist() == pytest.approx([0, 1 / 36, 8 / 36, 27 / 36])
    drawn = torch.multinomial(q, 20_000, replacement=True, generator=torch.Generator().manual_seed(1))
    assert (torch.bincount(drawn, minlength=4) / 20_000 - q).abs().max() < 0.01


def test_contexts_are_the_words_within_the_window_and_the_text():
    ids, texts = np.arange(40), np.repeat([0, 1, 2], [17, 1, 22])
    found = {}
    for some in neighbours(ids, texts, 3, np.random.default_rng(1)):
        for centre, contexts, real in zip(
            some.centres.tolist(), some.contexts.tolist(), some.real.tolist(), strict=True
        ):
            found[centre] = [context for context, yes in zip(contexts, real, strict=True) if yes]
    assert set(found) == set(range(40)) - {17}  # which is alone in its text
    reaches = Counter()
    for centre, contexts in found.items():
        reach = max(abs(context - centre) for context in contexts)
        within = [n for n in range(40) if n != centre and abs(n - centre) <= reach and texts[n] == texts[centre]]
        assert contexts == within
        reaches[reach] += 1
    assert set(reaches) == {1, 2, 3}


def test_texts_of_one_word_teach_nothing():
    corpus = gather([[4], [5], [4], [6]], 7)
    assert list(neighbours(corpus.ids, corpus.texts, 3, np.random.default_rng(1))) == []
    assert train_skip_gram(corpus, 5).isfinite().all()


def test_windows_are_drawn_evenly():
    ids, texts = np.zeros(30_000, dtype=int), np.zeros(30_000, dtype=int)
    widths = torch.cat([some.real.sum(1) for some in neighbours(ids, texts, 5, np.random.default_rng(2))])
    shares = torch.bincount(widths)[[2, 4, 6, 8, 10]] / 30_000
    assert (shares - 0.2).abs().max() < 0.01


def families(count, seed):
    """Texts whose words come from one of four families of five words, beside words that occur everywhere."""
    draw = random.Random(seed)
    return [
        [draw.choice([4 + 5 * family + draw.randrange(5), 24 + draw.randrange(3)]) for _ in range(draw.randint(5, 15))]
        for family in (draw.randrange(4) for _ in range(count))
    ]


def test_words_with_the_same_neighbours_become_neighbours():
    words = ["", "", "", "", *(f"word{n}" for n in range(24))]
    found = Word2Vec(epochs=5, subsample=0.0, window=3).find(words, families(2000, 1), 17)
    assert found.known.tolist() == [False] * 4 + [True] * 23 + [False]  # the last never occurs
    directions = torch.nn.functional.normalize(torch.from_numpy(found.values[4:24]), dim=1)
    nearest = (directions @ directions.T).fill_diagonal_(-1).argmax(1)
    assert (nearest // 5 == torch.arange(20) // 5).all()


def test_the_same_seed_gives_the_same_vectors():
    corpus = gather(families(50, 2), 28)
    one, same, other = (train_skip_gram(corpus, 5, epochs=1, seed=seed) for seed in (3, 3, 4))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"window": 0}, "window"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0"),
        ({"subsample": 1.0}, "subsample must be"),
        ({"tune": "some"}, "tune='some' is unknown"),
    ],
)
def test_impossible_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        vectors.create("word2vec", **arguments)


def test_too_few_words():
    with pytest.raises(ValueError, match="two words that occur 2 times or more"):
        Word2Vec().find(["", "a", "b"], [[1, 2, 2]], 5)
