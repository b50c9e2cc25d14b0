import pytest
import torch

from saccade.search import beam, greedy
from tests.search.toys import EncoderOutput, Recurrent, Step, Table, rescore, score, sequences


def close(one, two):
    assert one.tokens == two.tokens
    assert one.finished == two.finished
    assert one.log_prob == pytest.approx(two.log_prob, abs=1e-4)
    assert one.score == pytest.approx(two.score, abs=1e-4)
    if one.weights is None or two.weights is None:
        assert one.weights is two.weights is None
    else:
        keys = min(one.weights.shape[1], two.weights.shape[1])
        torch.testing.assert_close(one.weights[:, :keys], two.weights[:, :keys], rtol=1e-4, atol=1e-5)
        assert not one.weights[:, keys:].any()
        assert not two.weights[:, keys:].any()


@pytest.mark.parametrize(("alpha", "beta"), [(0.0, 0.0), (0.6, 0.0), (1.0, 0.3), (2.0, 0.0)])
@pytest.mark.parametrize("longest", [0, 1, 3])
def test_a_beam_as_wide_as_everything_finds_the_best(alpha, beta, longest):
    model = Table(batch=3, vocab=6, keys=5, seed=longest)
    found = beam(
        model, model.encoded, size=6**4, nbest=4, max_length=longest, length_penalty=alpha, coverage_penalty=beta
    )
    for sentence, hypotheses in enumerate(found):
        every = []
        for tokens in sequences(6, longest):
            log_prob, weights = rescore(model, model.alone(sentence), tokens)
            mask = model.encoded.mask[sentence]
            every.append((score(log_prob, len(tokens) + 1, alpha, weights, mask, beta), tokens))
        every.sort(key=lambda pair: -pair[0])
        finished = [hypothesis for hypothesis in hypotheses if hypothesis.finished]
        assert [h.tokens for h in finished] == [tokens for _, tokens in every[: len(finished)]]
        assert [h.score for h in finished] == pytest.approx([value for value, _ in every[: len(finished)]], abs=1e-4)
        assert len(finished) == min(4, len(every))


@pytest.mark.parametrize(
    "make", [lambda seed: Table(batch=5, vocab=11, keys=4, seed=seed), lambda s: Recurrent(seed=s)]
)
@pytest.mark.parametrize("seed", range(4))
def test_beam_of_one_is_greedy(make, seed):
    model = make(seed)
    for options in (
        {"max_length": 7},
        {"max_length": 5, "min_length": 3, "no_repeat_ngram": 2, "coverage_penalty": 0.2},
        {"max_length": 6, "forbidden": [4, 7], "forced": {2: 5}, "prefix": [6]},
    ):
        ones = [h for (h,) in beam(model, model.encoded, size=1, **options)]
        for one, other in zip(ones, greedy(model, model.encoded, **options), strict=True):
            close(one, other)


class Sure:
    """Writes 3, 4, 5, 6 and ends, nearly surely; ending at once is the next best all along."""

    def __init__(self):
        self.encoded = EncoderOutput(torch.zeros(1, 1, 1), torch.ones(1, 1, dtype=torch.bool))

    def begin(self, encoded):
        return 0

    def step(self, tokens, state):
        probs = torch.full((7,), 1e-6)
        probs[2] = 1e-3
        probs[min(3 + state, 6) if state < 4 else 2] = 1.0
        return Step(probs.log().expand(len(tokens), -1), state + 1, None)

    def select(self, state, rows):
        return state

    reorder = select


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_ends_that_are_improbable_do_not_end_the_search(size):
    model = Sure()
    ((hypothesis,),) = beam(model, model.encoded, size=size, max_length=9, weights=False)
    assert hypothesis.tokens == [3, 4, 5, 6]
    assert hypothesis.log_prob > -0.01


@pytest.mark.parametrize("size", [1, 2, 5, 13])
@pytest.mark.parametrize("make", [lambda: Table(batch=7, vocab=11, keys=4, seed=3), lambda: Recurrent(seed=3)])
def test_batched_is_one_by_one(size, make):
    model = make()
    options = {"size": size, "nbest": min(size, 3), "length_penalty": 0.8, "coverage_penalty": 0.1}
    longest = [5, 2, 8, 0, 3, 6, 8]
    together = beam(model, model.encoded, max_length=longest, **options)
    for sentence, hypotheses in enumerate(together):
        (single,) = beam(model, model.alone(sentence), max_length=longest[sentence], **options)
        assert len(single) == len(hypotheses)
        for one, other in zip(single, hypotheses, strict=True):
            close(one, other)


@pytest.mark.parametrize("size", [1, 4, 11])
def test_scores_and_weights_are_those_of_the_model(size):
    model = Recurrent(seed=5, batch=29)
    found = beam(model, model.encoded, size=size, nbest=size, max_length=6, length_penalty=0.7, coverage_penalty=0.2)
    endings = set()
    for sentence, hypotheses in enumerate(found):
        assert hypotheses
        for hypothesis in hypotheses:
            endings.add(hypothesis.finished)
            log_prob, weights = rescore(model, model.alone(sentence), hypothesis.tokens, end=hypothesis.finished)
            keys = weights.shape[1]
            assert hypothesis.log_prob == pytest.approx(log_prob, abs=1e-4)
            assert hypothesis.weights.shape == (len(hypothesis.tokens) + hypothesis.finished, 6)
            torch.testing.assert_close(hypothesis.weights[:, :keys], weights, rtol=1e-4, atol=1e-5)
            steps = len(hypothesis.tokens) + hypothesis.finished
            wanted = score(log_prob, steps, 0.7, weights, torch.ones(keys), 0.2)
            assert hypothesis.score == pytest.approx(wanted, abs=1e-3)
    assert endings == {True, False} or size > 1


def test_nbest_are_sorted_and_distinct():
    model = Recurrent(seed=1, batch=13)
    for hypotheses in beam(model, model.encoded, size=7, nbest=7, max_length=8):
        assert len({tuple(h.tokens) for h in hypotheses}) == len(hypotheses)
        ranks = [(h.finished, h.score) for h in hypotheses]
        assert ranks == sorted(ranks, reverse=True)


def test_fewer_than_asked_for_if_there_are_no_more():
    model = Table(batch=2, vocab=5)
    for hypotheses in beam(model, model.encoded, size=9, nbest=9, max_length=1):
        finished = sorted(h.tokens for h in hypotheses if h.finished)
        assert finished == [[], [3], [4]]


def test_a_wider_beam_is_not_worse_here_and_length_matters():
    model = Recurrent(seed=2, batch=23, keys=5)
    narrow = beam(model, model.encoded, size=1, max_length=7, length_penalty=0.0)
    wide = beam(model, model.encoded, size=300, max_length=7, length_penalty=0.0)
    for (one,), (other,) in zip(narrow, wide, strict=True):
        assert not one.finished or other.log_prob >= one.log_prob - 1e-5
    plain = sum(len(h.tokens) for (h,) in beam(model, model.encoded, size=50, max_length=7, length_penalty=0.0))
    normed = sum(len(h.tokens) for (h,) in beam(model, model.encoded, size=50, max_length=7, length_penalty=3.0))
    assert normed > plain


def test_coverage_makes_a_difference():
    model = Table(batch=17, vocab=7, keys=5, seed=2)

    def cover(beta):
        found = beam(model, model.encoded, size=64, max_length=5, coverage_penalty=beta, length_penalty=0.0)
        return sum(float(h.weights.sum(dim=0).clamp(max=1).sum()) for (h,) in found)

    assert cover(2.0) > cover(0.0)


def test_without_attention():
    model = Table(batch=3, vocab=7)
    for (hypothesis,) in beam(model, model.encoded, max_length=4, coverage_penalty=0.5):
        assert hypothesis.weights is None
    looking = Recurrent()
    for (one,), (other,) in zip(
        beam(looking, looking.encoded, max_length=4),
        beam(looking, looking.encoded, max_length=4, weights=False),
        strict=True,
    ):
        assert other.weights is None
        assert other[:4] == one[:4]


def test_cut_off_hypotheses_are_not_finished():
    model = Table(batch=2, vocab=7, keys=4)
    model.logits[..., 2] = -50
    for hypotheses in beam(model, model.encoded, size=3, nbest=2, max_length=[4, 0]):
        for hypothesis in hypotheses:
            assert not hypothesis.finished
            assert hypothesis.weights.shape == (len(hypothesis.tokens), 4)
    four, none = beam(model, model.encoded, size=3, nbest=2, max_length=[4, 0])
    assert [len(h.tokens) for h in four] == [4, 4]
    assert [(h.tokens, h.log_prob) for h in none] == [([], 0.0)]
    log_prob, _ = rescore(model, model.alone(0), four[0].tokens, end=False)
    assert four[0].log_prob == pytest.approx(log_prob, abs=1e-4)


def test_no_gradients_and_no_sentences():
    model = Recurrent()
    (first, *_) = beam(model, model.encoded, max_length=3)
    assert not first[0].weights.requires_grad
    assert beam(model, EncoderOutput(torch.zeros(0, 3, 5), torch.zeros(0, 3, dtype=torch.bool)), max_length=3) == []


def test_finished_sentences_leave_the_batch():
    model = Table(batch=5, vocab=7)
    model.logits[1:, ..., 2] = 50.0  # all but the first sentence end at once
    rows = []
    step = model.step
    model.step = lambda tokens, state: rows.append(len(tokens)) or step(tokens, state)
    beam(model, model.encoded, size=3, max_length=4, min_length=4)
    beams = rows.copy()
    rows.clear()
    beam(model, model.encoded, size=3, max_length=4, length_penalty=0.0)
    assert rows[0] == 5
    assert max(rows[1:]) <= 3
    assert beams == [5, 15, 15, 15, 15]


def test_bfloat16_logits():
    model = Recurrent()
    step = model.step

    def rounded(tokens, state):
        logits, state, weights = step(tokens, state)
        return Step(logits.bfloat16(), state, weights)

    model.step = rounded
    for (hypothesis,) in beam(model, model.encoded, max_length=5):
        assert torch.isfinite(torch.tensor(hypothesis.score))


def test_mistakes_are_named():
    model = Table(batch=3, vocab=7)
    for options, message in (
        ({"size": 2, "nbest": 3}, "nbest must be between 1 and size=2"),
        ({"size": 0}, "nbest"),
        ({"length_penalty": -1.0}, "length_penalty=-1.0"),
        ({"coverage_penalty": -0.1}, "coverage_penalty=-0.1"),
        ({"min_length": -1}, "min_length"),
        ({"no_repeat_ngram": -2}, "no_repeat_ngram"),
        ({"max_length": [1, 2]}, "one for each of 3 sentences"),
        ({"max_length": -1}, "max_length must be 0 or more"),
        ({"prefix": [[3], [4]]}, "one list for each of the 3 sentences, got 2"),
        ({"forced": {-1: 3}}, "must be 0 or more"),
    ):
        with pytest.raises(ValueError, match=message):
            beam(model, model.encoded, **{"max_length": 3, **options})
    model.logits[1] = float("nan")
    with pytest.raises(ValueError, match="sentence 1"):
        beam(model, model.encoded, max_length=3)
