"""Gradients by token, against finite differences and what can be said by hand."""

import pytest
import torch
from torch import nn

from saccade.interpretation.attribution import label_gradient_times_input
from saccade.models import AttentionPooling
from saccade.training import seed_everything

BATCH, LENGTH, VOCAB = 3, 7, 13


def test_by_finite_differences():
    seed_everything(1)
    model = AttentionPooling(vocab=VOCAB, classes=5, embedding_dim=4, hidden_dim=3, dropout=0.0).double().eval()
    # Each position has a token of its own, so that a row of the table can be moved alone.
    tokens = torch.randperm(VOCAB)[:LENGTH].expand(BATCH, -1)[:1]
    mask = torch.arange(LENGTH)[None] < 5
    found = label_gradient_times_input(model, tokens, mask)
    assert found.shape == (1, LENGTH)
    table = next(part for part in model.modules() if isinstance(part, nn.Embedding)).weight
    best = model(tokens, mask).argmax()
    for place in range(LENGTH):
        row = tokens[0, place]
        original = table[row].detach().clone()
        values = []
        for scale in (1 + 1e-6, 1 - 1e-6):  # along the embedding itself
            with torch.no_grad():
                table[row] = scale * original
                values.append(model(tokens, mask).log_softmax(1)[0, best].item())
                table[row] = original
        assert found[0, place].item() == pytest.approx(abs(values[0] - values[1]) / 2e-6, abs=1e-6)
    assert (found[0, 5:] == 0).all()  # padding


def test_rows_do_not_depend_on_each_other():
    seed_everything(2)
    model = AttentionPooling(vocab=VOCAB, classes=5, embedding_dim=4, hidden_dim=3, dropout=0.0).double().eval()
    tokens = torch.randint(1, VOCAB, (BATCH, LENGTH))
    mask = torch.arange(LENGTH) < torch.tensor([7, 2, 5])[:, None]
    together = label_gradient_times_input(model, tokens, mask)
    for row in range(BATCH):
        alone = label_gradient_times_input(model, tokens[row : row + 1], mask[row : row + 1])
        torch.testing.assert_close(alone[0], together[row])
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_model_without_embeddings():
    with pytest.raises(TypeError, match=r"Linear has no nn\.Embedding"):
        label_gradient_times_input(nn.Linear(3, 2), torch.randn(2, 3))
