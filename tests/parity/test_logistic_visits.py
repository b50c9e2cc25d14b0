"""Logistic regression over records: the weights that scikit-learn finds for the same penalty."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from saccade.models import VisitBag

linear = pytest.importorskip("sklearn.linear_model")


def test_weights_are_those_of_scikit_learn() -> None:
    made = torch.Generator().manual_seed(3)
    rows, visits, codes, vocab, penalty = 211, 3, 5, 13, 0.02
    ids = torch.randint(0, vocab, (rows, visits, codes), generator=made)
    amounts = (ids != 0).float()
    mask = torch.ones(rows, visits, dtype=torch.bool)
    counts = F.one_hot(ids, vocab).float().sum((1, 2))[:, 1:]
    effects = torch.randn(vocab - 1, generator=made)
    wanted = torch.rand(rows, generator=made) < (counts @ effects).sigmoid()
    model = VisitBag(vocab=vocab, static=1, classes=2, each_visit=False)
    static = torch.zeros(rows, 1, dtype=torch.long)
    optimiser = torch.optim.LBFGS(model.parameters(), max_iter=500, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        logits = model(ids, mask, amounts, torch.zeros(rows, visits), static, static.float())
        found = F.cross_entropy(logits, wanted.long()) + penalty / 2 * model.codes.weight.square().sum()
        found.backward()
        return found

    optimiser.step(loss)
    # Two softmax weights share the penalty of one logistic weight: w/2 and -w/2 cost half as much as w.
    peer = linear.LogisticRegression(C=2.0 / (penalty * rows), tol=1e-10, max_iter=5000)
    peer.fit(counts.numpy(), wanted.numpy())
    own = (model.codes.weight[1:, 1] - model.codes.weight[1:, 0]).detach().numpy()
    np.testing.assert_allclose(own, peer.coef_[0], atol=2e-3)
