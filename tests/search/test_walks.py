from collections import Counter

import pytest
import torch

from saccade.search import beam, greedy, sample
from saccade.search.sampling import keep_top_k, keep_top_p
from tests.search.toys import EncoderOutput, Recurrent, Table, rescore


@pytest.mark.parametrize("make", [lambda: Table(batch=7, vocab=11, keys=4, seed=3), lambda: Recurrent(seed=3)])
def test_greedy_takes_the_likeliest_token(make):
    model = make()
    longest = [5, 2, 8, 0, 3, 6, 8]
    for sentence, hypothesis in enumerate(greedy(model, model.encoded, max_length=longest)):
        state, token, tokens, total, finished = model.begin(model.alone(sentence)), 1, [], 0.0, False
        for _ in range(longest[sentence] + 1):
            step = model.step(torch.tensor([token]), state)
            log_probs = step.logits.log_softmax(dim=-1)[0].detach()
            log_probs[:2] = float("-inf")
            token, state = int(log_probs.argmax()), step.state
            if token == 2:
                finished = True
                total += float(log_probs[token])
                break
            if len(tokens) == longest[sentence]:
                break
            tokens.append(token)
            total += float(log_probs[token])
        assert hypothesis.tokens == tokens
        assert hypothesis.finished == finished
        assert hypothesis.log_prob == pytest.approx(total, abs=1e-4)
        _, weights = rescore(model, model.alone(sentence), tokens, end=finished)
        if weights is not None:
            torch.testing.assert_close(hypothesis.weights[:, : weights.shape[1]], weights, rtol=1e-4, atol=1e-5)
        assert hypothesis.weights.shape[0] == len(tokens) + finished


def test_samples_follow_the_model():
    model = Table(batch=1, vocab=6, seed=1)
    many = EncoderOutput(torch.zeros(20011, 1, 1), torch.ones(20011, 1, dtype=torch.bool))  # the same sentence again
    found = sample(model, many, max_length=2, generator=torch.Generator().manual_seed(7))
    counts = Counter((tuple(h.tokens), h.finished) for h in found)
    for h in {(tuple(h.tokens), h.finished): h for h in found}.values():
        log_prob, _ = rescore(model, model.alone(0), h.tokens, end=h.finished)
        assert h.log_prob == pytest.approx(log_prob, abs=1e-4)
        assert h.score == pytest.approx(h.log_prob)
    # Begin and padding are left out, and what remains is drawn as the model has it.
    first = model.logits[0, 0, 1].log_softmax(0).exp()
    wanted = first[2] / first[2:].sum()
    assert counts[((), True)] / 20011 == pytest.approx(float(wanted), abs=0.015)


def test_temperature_and_truncation():
    model = Table(batch=1, vocab=9, seed=2)
    many = EncoderOutput(torch.zeros(5003, 1, 1), torch.ones(5003, 1, dtype=torch.bool))

    def first_tokens(**options):
        found = sample(model, many, max_length=1, min_length=1, generator=torch.Generator().manual_seed(3), **options)
        return Counter(h.tokens[0] for h in found)

    logits = model.logits[0, 0, 1].clone()
    logits[:3] = float("-inf")
    order = logits.argsort(descending=True).tolist()
    assert set(first_tokens(top_k=3)) == set(order[:3])
    assert set(first_tokens(temperature=1e-3)) == {order[0]}
    probabilities = logits.softmax(0)
    wanted, mass = [], 0.0
    for token in order:
        if mass >= 0.7:
            break
        wanted.append(token)
        mass += float(probabilities[token])
    assert set(first_tokens(top_p=0.7)) == set(wanted)
    assert set(first_tokens(top_p=1e-6)) == {order[0]}
    assert set(first_tokens(top_k=2, top_p=1.0)) == set(order[:2])
    cold, hot = first_tokens(temperature=0.5), first_tokens(temperature=2.0)
    assert cold[order[0]] > first_tokens()[order[0]] > hot[order[0]]
    sharp = (logits / 0.5).softmax(0)
    assert cold[order[0]] / 5003 == pytest.approx(float(sharp[order[0]]), abs=0.03)


def test_the_generator_decides():
    model = Recurrent(batch=13)
    draw = [sample(model, model.encoded, max_length=9, generator=torch.Generator().manual_seed(s)) for s in (1, 1, 2)]
    tokens = [[h.tokens for h in found] for found in draw]
    assert tokens[0] == tokens[1] != tokens[2]
    for sentence, hypothesis in enumerate(draw[0]):
        log_prob, weights = rescore(model, model.alone(sentence), hypothesis.tokens, end=hypothesis.finished)
        assert hypothesis.log_prob == pytest.approx(log_prob, abs=1e-3)
        torch.testing.assert_close(hypothesis.weights[:, : weights.shape[1]], weights, rtol=1e-4, atol=1e-5)


def test_filters():
    scores = torch.tensor([[1.0, 3.0, 2.0, 3.0], [4.0, 0.0, float("-inf"), 1.0]])
    assert (keep_top_k(scores, 1) > float("-inf")).tolist() == [[False, True, False, True], [True, False, False, False]]
    assert torch.equal(keep_top_k(scores, 9), scores)
    probabilities = torch.tensor([[0.5, 0.2, 0.3], [0.1, 0.8, 0.1]])
    assert (keep_top_p(probabilities.log(), 0.6) > float("-inf")).tolist() == [
        [True, False, True],
        [False, True, False],
    ]


def test_finished_sentences_leave_the_batch():
    model = Table(batch=5, vocab=7)
    model.logits[1:, ..., 2] = 50.0
    model.logits[0, ..., 2] = -50.0
    rows = []
    step = model.step
    model.step = lambda tokens, state: rows.append(len(tokens)) or step(tokens, state)
    greedy(model, model.encoded, max_length=2)
    assert rows == [5, 1, 1]


def test_no_sentences():
    nothing = EncoderOutput(torch.zeros(0, 3, 1), torch.zeros(0, 3, dtype=torch.bool))
    model = Recurrent()
    assert greedy(model, nothing, max_length=3) == sample(model, nothing, max_length=3) == []


def test_mistakes_are_named():
    model = Table(batch=3, vocab=7)
    for options, message in (
        ({"temperature": 0.0}, "temperature"),
        ({"top_k": 0}, "top_k"),
        ({"top_p": 1.5}, "top_p"),
        ({"top_p": 0.0}, "top_p"),
        ({"length_penalty": -1.0}, "length_penalty"),
    ):
        with pytest.raises(ValueError, match=message):
            sample(model, model.encoded, max_length=3, **options)
    with pytest.raises(TypeError, match="max_length"):
        beam(model, model.encoded)
