"""The whole network: shapes, options and refusals."""

import pytest
import torch

from saccade.models.gat import GAT

GRAPH = (torch.tensor([0, 2, 5, 6, 6]), torch.tensor([0, 1, 0, 1, 2, 1]))


@pytest.mark.parametrize("score", ["gat", "gatv2"])
@pytest.mark.parametrize("selection", ["softmax", "sparsemax", "entmax15"])
@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_logits(score, selection, num_layers):
    model = GAT(
        dim=5, classes=7, hops=3, num_layers=num_layers, num_heads=2, head_dim=3, score=score, selection=selection
    )
    logits = model(torch.tensor([3, 0, 0]), torch.randn(4, 5), *GRAPH)
    assert logits.shape == (3, 7)
    logits.sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_layers_do_not_share_their_scores():
    model = GAT(dim=5, classes=7, hops=2)
    assert model.layers[0].attention.score is not model.layers[1].attention.score


def test_the_paper_has_these_parameters():
    model = GAT(dim=1433, classes=7, hops=2)
    first = 1433 * 64 + 8 * 2 * 8 + 64
    assert sum(p.numel() for p in model.parameters()) == first + 64 * 7 + 2 * 7 + 7


def test_dropout_is_for_training_alone():
    model = GAT(dim=5, classes=7, hops=2)
    inputs = (torch.tensor([0, 1]), torch.randn(4, 5), *GRAPH)
    assert not torch.equal(model(*inputs), model(*inputs))
    model.eval()
    assert torch.equal(model(*inputs), model(*inputs))


def test_too_few_hops():
    with pytest.raises(
        ValueError, match="num_layers=3 needs nodes up to 3 steps away, but the field has hops=2: set hops"
    ):
        GAT(dim=5, classes=7, hops=2, num_layers=3)
    with pytest.raises(ValueError, match="num_layers"):
        GAT(dim=5, classes=7, hops=2, num_layers=0)
