"""What is recorded of PyTorch Geometric's layers is what they return themselves."""

import pytest
import torch

import saccade

pyg = pytest.importorskip("torch_geometric.nn", reason="the peer `torch_geometric` is not installed")

NODES, HEADS = 7, 3
EDGES = torch.tensor([[0, 1, 2, 3, 4, 5, 6, 0, 3, 3], [1, 2, 3, 4, 5, 6, 0, 3, 0, 0]])  # the last one twice


@pytest.mark.parametrize("name", ["GATConv", "GATv2Conv", "TransformerConv"])
@pytest.mark.parametrize("train", [False, True])
def test_layers(name, train):
    layer = getattr(pyg, name)(5, 4, heads=HEADS, dropout=0.5).train(train)
    x = torch.randn(NODES, 5)
    with saccade.record(layer) as trace:
        output = layer(x, EDGES)
    edges, weights = layer.eval()(x, EDGES, return_attention_weights=True)[1]  # dropout would be in them
    assert train or torch.equal(output, layer(x, EDGES))
    found_edges, found = trace[name].edges
    assert torch.equal(found_edges, edges)
    torch.testing.assert_close(found, weights.detach(), rtol=0, atol=1e-6)
    dense = torch.zeros(HEADS, NODES, NODES)
    for (source, target), weight in zip(edges.T.tolist(), weights.detach(), strict=True):
        dense[:, target, source] += weight
    assert trace[name].shape == (1, HEADS, NODES, NODES)
    torch.testing.assert_close(trace[name].weights[0], dense, rtol=0, atol=1e-6)


def test_a_whole_network():
    model = pyg.GAT(5, 8, num_layers=2, heads=2).eval()
    with saccade.record(model, reduce="mean") as trace:
        model(torch.randn(NODES, 5), EDGES)
    assert list(trace) == ["convs.0", "convs.1"]
    rows = trace["convs.1"].weights.sum(-1)
    torch.testing.assert_close(rows, torch.ones(1, 1, NODES))


def test_two_kinds_of_nodes():
    layer = pyg.GATConv((5, 3), 4, heads=HEADS, add_self_loops=False)
    with saccade.record(layer) as trace:
        layer((torch.randn(NODES, 5), torch.randn(4, 3)), torch.tensor([[0, 6, 2], [1, 3, 3]]))
    assert trace["GATConv"].shape == (1, HEADS, 4, NODES)
    assert trace["GATConv"].weights[0, 0, 1, 0] == pytest.approx(1.0)


def test_weights_of_edges_cannot_be_changed():
    layer = pyg.GATConv(5, 4)
    with (
        pytest.raises(NotImplementedError, match="weights of a graph's edges cannot be changed"),
        saccade.record(layer, change={"*": lambda weights, mask, steps: weights}),
    ):
        layer(torch.randn(NODES, 5), EDGES)
