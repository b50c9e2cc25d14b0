"""The adaptive softmax: a distribution whose loss and best word are those of all its log-probabilities."""

import pytest
import torch

from saccade.decoders.heads import AdaptiveHead
from saccade.fields import Text
from saccade.models import LSTMLanguageModel
from saccade.tasks import LanguageModelling

VOCAB, DIM = 41, 17


def make():
    torch.manual_seed(0)
    return AdaptiveHead(input_dim=DIM, vocab_size=VOCAB, cutoffs=[7, 19])


def test_loss_and_right_are_those_of_the_full_distribution() -> None:
    head, features = make(), 3 * torch.randn(53, DIM)
    logits = head.logits(features)
    torch.testing.assert_close(logits.exp().sum(-1), torch.ones(53))
    targets = torch.where(torch.arange(53) % 2 == 0, logits.argmax(-1), torch.arange(53) % VOCAB)
    found = head.loss(features, targets)
    torch.testing.assert_close(found.total, -logits.gather(1, targets[:, None]).sum())
    assert int(found.right) == int((logits.argmax(-1) == targets).sum()) >= 27
    smooth = head.loss(features, targets, smoothing=0.1)
    assert float(smooth.total.detach()) != pytest.approx(float(found.total.detach()))
    assert head.logits(features.view(1, 53, DIM)).shape == (1, 53, VOCAB)
    assert float(head.loss(features[:0], targets[:0]).total.detach()) == 0.0
    values, best = head.best(features, 2, torch.tensor([0]))
    assert (best != 0).all()
    torch.testing.assert_close(values, logits[:, 1:].topk(2).values)


def test_a_language_model_has_it_by_its_cutoffs() -> None:
    task = LanguageModelling(text=Text(tokeniser="word"))
    task.fit([{"text": "a a a a b b b c c d e f g"}])
    model = task.build(LSTMLanguageModel, dim=16, num_layers=1, tied=False, cutoffs=[6, 8])
    assert isinstance(model.head, AdaptiveHead)
    batch = task.collate([task.encode({"text": "a b e g"})])
    model.eval()
    (answer,) = task.predict(model, ["a b e g"], score=True)
    assert answer.value == pytest.approx(-float(task.loss(model, batch).total.detach()), rel=1e-5)
    assert task.predict(model, ["a b"], max_length=3)[0].text.startswith("a b")


@pytest.mark.parametrize("cutoffs", [[], [0, 3], [5, 3], [5, 5], [5, VOCAB]])
def test_refusals(cutoffs) -> None:
    with pytest.raises(ValueError, match="cutoffs must rise from 1 or more to less than the 41 words"):
        AdaptiveHead(input_dim=DIM, vocab_size=VOCAB, cutoffs=cutoffs)
    with pytest.raises(ValueError, match="2 clusters need 16 features or more, got 15"):
        AdaptiveHead(input_dim=15, vocab_size=VOCAB, cutoffs=[5, 9])
    with pytest.raises(ValueError, match="set tied to false"):
        LSTMLanguageModel(vocab=VOCAB, dim=DIM, cutoffs=[5])
