"""Search with CTC: a wide beam finds the best of all texts, by the sum of both models' log-probabilities."""

import itertools

import pytest
import torch
from torch.nn import functional as F

from saccade.models import ListenAttendSpell
from saccade.search import JointCTC, beam, greedy

BOS, EOS, VOCAB, MOST = 1, 2, 6, 3


@pytest.fixture
def model():
    torch.manual_seed(0)
    made = ListenAttendSpell(
        source_dim=3,
        target_vocab=VOCAB,
        embedding_dim=5,
        listener_dim=4,
        hidden_dim=7,
        pyramid=[2],
        ctc_weight=0.4,
    ).eval()
    for parameter in made.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    return made


def scores(model, encoded, row, texts, weight):
    """Both models' log-probabilities of each text with its end, weighted."""
    mask = encoded.mask[row]
    frames = model.ctc(encoded.states)[row][mask]
    one = type(encoded)(*(_row(part, row) for part in encoded))
    found = {}
    for text in texts:
        target = torch.tensor([[*text, EOS]])
        decoded = model.decoder(one, torch.tensor([[BOS, *text]]))
        own = model.head.logits(decoded.features).log_softmax(-1).gather(2, target[..., None]).sum()
        lengths = torch.tensor([len(frames)]), torch.tensor([len(text)])
        ctc = -F.ctc_loss(frames[:, None], torch.tensor([text or [0]]), *lengths, blank=0, reduction="sum")
        found[text] = float((1 - weight) * own + weight * ctc)
    return found


def _row(part, row):
    if isinstance(part, torch.Tensor):
        return part[row : row + 1]
    return None if part is None else tuple(_row(each, row) for each in part)


@pytest.mark.parametrize("weight", [0.3, 1.0])
@torch.no_grad()
def test_a_wide_beam_finds_the_best_text(model, weight) -> None:
    source = torch.randn(3, 11, 3)
    mask = torch.arange(11) < torch.tensor([[11], [9], [4]])
    encoded = model.encode(source, mask)
    texts = [text for length in range(MOST + 1) for text in itertools.product(range(3, VOCAB), repeat=length)]
    found = beam(JointCTC(model, model.ctc, weight), encoded, size=60, nbest=3, max_length=MOST, length_penalty=0.0)
    for row in range(3):
        wanted = scores(model, encoded, row, texts, weight)
        possible = {text: score for text, score in wanted.items() if score > -1e3}
        ranked = sorted(possible, key=possible.__getitem__, reverse=True)
        ours = [tuple(hypothesis.tokens) for hypothesis in found[row] if hypothesis.finished]
        assert ours[: len(ranked)] == ranked[:3]
        for hypothesis in found[row][: len(ranked)]:
            assert hypothesis.log_prob == pytest.approx(wanted[tuple(hypothesis.tokens)], abs=1e-4)
            assert hypothesis.weights.shape == (len(hypothesis.tokens) + 1, 6)


@pytest.mark.parametrize("weight", [0.3, 1.0])
@torch.no_grad()
def test_greedy_search_takes_the_best_token_of_both_models(model, weight) -> None:
    """A prefix is worth what the decoder gives to its tokens and CTC to all texts that begin with it."""
    encoded = model.encode(torch.randn(2, 8, 3), torch.ones(2, 8, dtype=torch.bool))
    found = greedy(JointCTC(model, model.ctc, weight), encoded, max_length=MOST)
    for row in range(2):
        # 4 frames hold no text of more than 4 letters, so these are all texts.
        texts = [text for length in range(5) for text in itertools.product(range(3, VOCAB), repeat=length)]
        ctc = scores(model, encoded, row, texts, 1.0)
        one = type(encoded)(*(_row(part, row) for part in encoded))
        prefix: tuple[int, ...] = ()
        while len(prefix) <= MOST:
            decoded = model.decoder(one, torch.tensor([[BOS, *prefix]]))
            own = model.head.logits(decoded.features)[0, -1].log_softmax(-1)
            before = log_sum(ctc[text] for text in texts if text[: len(prefix)] == prefix)
            worth = {EOS: (1 - weight) * float(own[EOS]) + weight * (ctc[prefix] - before)}
            for token in range(3, VOCAB):
                longer = (*prefix, token)
                after = log_sum(ctc[text] for text in texts if text[: len(longer)] == longer)
                worth[token] = (1 - weight) * float(own[token]) + weight * (after - before)
            best = max(worth, key=worth.__getitem__)
            if best == EOS or len(prefix) == MOST:
                break
            prefix = (*prefix, best)
        assert tuple(found[row].tokens) == prefix
        assert found[row].finished == (best == EOS)


def log_sum(values) -> float:
    return float(torch.tensor([-1e30, *values], dtype=torch.float64).logsumexp(0))


@torch.no_grad()
def test_constraints(model) -> None:
    encoded = model.encode(torch.randn(2, 8, 3), torch.ones(2, 8, dtype=torch.bool))
    joint = JointCTC(model, model.ctc, 0.5)
    for several in beam(joint, encoded, size=3, max_length=4, forbidden=[3], min_length=2):
        assert 3 not in several[0].tokens
        assert len(several[0].tokens) >= 2
