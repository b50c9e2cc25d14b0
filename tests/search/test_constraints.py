import itertools

import pytest
import torch

from saccade.search import beam, greedy, sample
from saccade.search.constraints import Past, at_least, forbid, no_repeat
from tests.search.toys import Recurrent, Table, rescore, score, sequences


def every_search(model, **options):
    """All hypotheses of greedy search, beam search and sampling."""
    found = [[h] for h in greedy(model, model.encoded, **options)]
    found += beam(model, model.encoded, size=6, nbest=3, **options)
    found += [[h] for h in sample(model, model.encoded, generator=torch.Generator().manual_seed(0), **options)]
    batch = len(model.encoded.mask)
    return [(number % batch, h) for number, hypotheses in enumerate(found) for h in hypotheses]


MODELS = [lambda: Table(batch=5, vocab=9, keys=4), lambda: Recurrent(vocab=9, batch=5)]


@pytest.mark.parametrize("make", MODELS)
def test_special_ids_are_never_written(make):
    for _, hypothesis in every_search(make(), max_length=8):
        assert not {0, 1, 2} & set(hypothesis.tokens)


@pytest.mark.parametrize("make", MODELS)
def test_lengths(make):
    for _, hypothesis in every_search(make(), max_length=8, min_length=5):
        assert 5 <= len(hypothesis.tokens) <= 8
    for _, hypothesis in every_search(make(), max_length=3, min_length=3):
        assert len(hypothesis.tokens) == 3


@pytest.mark.parametrize("make", MODELS)
def test_forbidden(make):
    for _, hypothesis in every_search(make(), max_length=8, forbidden=[3, 5, 8]):
        assert set(hypothesis.tokens) <= {4, 6, 7}


@pytest.mark.parametrize("make", MODELS)
def test_forbidden_sequences(make):
    sequences = [[3, 4], [5, 6, 7], [8]]
    written = [h.tokens for _, h in every_search(make(), max_length=8, min_length=7, forbidden=[6, *sequences])]
    for tokens in written:
        assert 6 not in tokens
        for sequence in sequences:
            assert not any(tokens[k : k + len(sequence)] == sequence for k in range(len(tokens)))
    assert any(3 in tokens for tokens in written)
    with pytest.raises(ValueError, match="at least one token"):
        every_search(make(), max_length=8, forbidden=[[]])


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("make", MODELS)
def test_no_repeat(size, make):
    for _, hypothesis in every_search(make(), max_length=8, min_length=7, no_repeat_ngram=size):
        grams = list(zip(*(hypothesis.tokens[k:] for k in range(size)), strict=False))
        assert len(set(grams)) == len(grams)


def test_no_repeat_forbids_exactly_what_would_repeat():
    generator = torch.Generator().manual_seed(0)
    for size, steps in itertools.product((1, 2, 3, 4), range(8)):
        past = torch.randint(0, 4, (7, steps), generator=generator)
        got = no_repeat(size)(torch.zeros(7, 4), Past(past, torch.arange(7))) == float("-inf")
        for row, token in itertools.product(range(7), range(4)):
            whole = [*past[row].tolist(), token]
            grams = [tuple(whole[k : k + size]) for k in range(len(whole) - size + 1)]
            assert got[row, token] == (bool(grams) and grams[-1] in grams[:-1])


@pytest.mark.parametrize("make", MODELS)
def test_prefixes_and_forced_tokens(make):
    for _, hypothesis in every_search(make(), max_length=8, prefix=[5, 3]):
        assert hypothesis.tokens[:2] == [5, 3]
    own = [[5, 3], [], [7], [8, 8, 8], [4]]
    for sentence, hypothesis in every_search(make(), max_length=8, prefix=own):
        assert hypothesis.tokens[: len(own[sentence])] == own[sentence]
    for _, hypothesis in every_search(make(), max_length=8, forced={1: 6, 3: 4}):
        assert (hypothesis.tokens[1:2] or [6]) == [6]
        assert (hypothesis.tokens[3:4] or [4]) == [4]
    for _, hypothesis in every_search(make(), max_length=8, forced={0: 6, 1: 7}, prefix=[5]):
        assert hypothesis.tokens[:2] == [5, 7]


def test_required_tokens_have_the_first_say():
    for _, hypothesis in every_search(
        MODELS[0](), max_length=8, prefix=[5, 5, 5], forbidden=[5], no_repeat_ngram=1, min_length=2
    ):
        assert hypothesis.tokens[:3] == [5, 5, 5]
        assert 5 not in hypothesis.tokens[3:]
    for _, hypothesis in every_search(MODELS[0](), max_length=8, forced={1: 2}, min_length=4):
        assert len(hypothesis.tokens) == 1
        assert hypothesis.finished


def test_the_end_is_allowed_where_nothing_else_is():
    model = Table(batch=3, vocab=6)
    for _, hypothesis in every_search(model, max_length=8, min_length=8, no_repeat_ngram=1):
        assert sorted(hypothesis.tokens) == [3, 4, 5]
        assert hypothesis.finished


def test_own_constraints_compose():
    def rising(scores, past):
        if past.tokens.shape[1]:
            ids = torch.arange(scores.shape[1])
            falls = (ids <= past.tokens[:, -1:]) & (ids != 2)
            scores = scores.masked_fill(falls, float("-inf"))
        return scores

    found = every_search(MODELS[1](), max_length=8, constraints=[rising], min_length=3, forbidden=[4])
    for _, hypothesis in found:
        assert hypothesis.tokens == sorted(set(hypothesis.tokens) - {4})
        assert len(hypothesis.tokens) >= 3 or hypothesis.tokens[-1] == 8  # nothing can rise above it


def test_the_best_under_constraints_is_found():
    model = Table(batch=3, vocab=7, seed=4)
    options = {"min_length": 2, "no_repeat_ngram": 1, "forbidden": [4], "prefix": [[], [5], [6, 3]]}
    found = beam(model, model.encoded, size=7**3, max_length=3, length_penalty=0.5, **options)
    for sentence, (hypothesis,) in enumerate(found):
        allowed = [
            tokens
            for tokens in sequences(7, 3)
            if len(tokens) >= 2
            and len(set(tokens)) == len(tokens)
            and 4 not in tokens
            and tokens[: len(options["prefix"][sentence])] == options["prefix"][sentence]
        ]
        scores = {tuple(t): score(rescore(model, model.alone(sentence), t)[0], len(t) + 1, 0.5) for t in allowed}
        best = max(scores, key=scores.get)
        assert tuple(hypothesis.tokens) == best
        assert hypothesis.score == pytest.approx(scores[best], abs=1e-4)  # not rescaled to what is allowed


def test_small_pieces():
    past = Past(torch.tensor([[3, 4]]), torch.tensor([0]))
    assert forbid([1, 1, 4])(torch.zeros(1, 5), past).isinf().tolist() == [[False, True, False, False, True]]
    assert at_least(3, eos=2)(torch.zeros(1, 5), past).isinf().tolist() == [[False, False, True, False, False]]
    assert not at_least(2, eos=2)(torch.zeros(1, 5), past).isinf().any()
