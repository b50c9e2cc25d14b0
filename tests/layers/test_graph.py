"""Blocks of nodes by degree, and the layer on them node by node."""

import pytest
import torch
from torch.nn import functional as F

from saccade.interpretation.recording import record
from saccade.kernels import native
from saccade.kernels.modes import plainly
from saccade.layers.graph import GraphAttention, Neighbourhoods, _project_sparse, degree_blocks
from saccade.models.gat import GAT

LISTS = [[1, 2, 3], [], [0], [4, 3], [0, 1, 2, 3, 4], [5, 0, 1, 2, 3, 4, 1, 2, 3]]


def starts_of(lists):
    degrees = torch.tensor([len(each) for each in lists])
    starts = torch.cat([torch.zeros(1, dtype=torch.long), degrees.cumsum(0)])
    return starts, torch.tensor([n for each in lists for n in each], dtype=torch.long)


def test_blocks_hold_every_list_once():
    blocks = degree_blocks(*starts_of(LISTS))
    found = {}
    for block in blocks:
        assert block.mask.float().mean() >= 0.5, "at most half is padding"
        for row, node in enumerate(block.rows.tolist()):
            assert node not in found
            found[node] = block.neighbours[row][block.mask[row]].tolist()
            assert block.mask[row].tolist() == sorted(block.mask[row].tolist(), reverse=True)
    assert found == {node: each for node, each in enumerate(LISTS) if each}


@pytest.mark.parametrize("lists", [[], [[]], [[], []]])
def test_no_edges_no_blocks(lists):
    assert degree_blocks(*starts_of(lists)) == []


@pytest.mark.parametrize("score", ["gat", "gatv2", "scaled_dot", "additive"])
@pytest.mark.parametrize("average", [False, True])
def test_node_by_node(score, average):
    layer = GraphAttention(input_dim=5, head_dim=4, num_heads=2, score=score, average=average).double()
    torch.nn.init.normal_(layer.bias)
    features = torch.randn(6, 5).double().requires_grad_()
    heads = (features @ layer.proj.weight.T).view(6, 2, 4)
    expected = torch.zeros(6, 2, 4).double()
    for node, near in enumerate(LISTS):
        if near:
            keys = heads[near].transpose(0, 1)  # (heads, degree, dim)
            scores = layer.attention.score(heads[node].unsqueeze(1), keys)
            expected[node] = (scores.softmax(-1) @ keys).squeeze(1)
    expected = (expected.mean(1) if average else expected.flatten(1)) + layer.bias
    torch.testing.assert_close(layer(features, Neighbourhoods(*starts_of(LISTS))), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("score", ["gat", "gatv2"])
@pytest.mark.parametrize("selection", ["softmax", "sparsemax", "entmax15"])
@pytest.mark.parametrize("options", [{}, {"edge_dim": 3, "separate": True, "skip": True}])
def test_kernels_and_blocks_give_the_same(score, selection, options):
    layer = GraphAttention(input_dim=5, head_dim=4, num_heads=2, score=score, selection=selection, **options).double()
    starts, neighbours = starts_of(LISTS)
    edges = torch.randn(len(neighbours), 3).double() if options else None
    features = torch.randn(6, 5).double().requires_grad_()
    near, wanted = Neighbourhoods(starts, neighbours, edges), [features, *layer.parameters()]
    towards = torch.randn(6, 8).double()
    fast = layer(features, near)
    with plainly():
        plain = layer(features, near)
        expected = torch.autograd.grad(plain, wanted, towards)
    torch.testing.assert_close(fast, plain)
    for one, other in zip(torch.autograd.grad(fast, wanted, towards), expected, strict=True):
        torch.testing.assert_close(one, other)
    with record(layer) as trace:
        torch.testing.assert_close(layer(features, near), plain)
    assert sum(call.shape[0] for call in trace.calls) == sum(map(bool, LISTS)), "every node with neighbours is seen"


def test_skip_adds_a_projection_of_the_node_itself():
    layer = GraphAttention(input_dim=5, head_dim=4, num_heads=2, skip=True)
    features = torch.randn(6, 5)
    alone = layer(features, Neighbourhoods(*starts_of([[]] * 6)))
    torch.testing.assert_close(alone, layer.skip_proj(features) + layer.bias)


def test_as_many_features_as_edges():
    with pytest.raises(ValueError, match="edges need as many features"):
        Neighbourhoods(*starts_of(LISTS), torch.zeros(2, 3))


def test_a_node_without_neighbours_reads_zeros():
    layer = GraphAttention(input_dim=5, head_dim=4, num_heads=2)
    read = layer(torch.randn(6, 5), Neighbourhoods(*starts_of(LISTS)))
    assert (read[1] == 0).all()
    assert (layer(torch.randn(3, 5), Neighbourhoods(*starts_of([[], [], []]))) == 0).all()


def test_mostly_zero_features_are_projected_the_same():
    weight = torch.randn(7, 40, requires_grad=True)
    features = torch.randn(9, 40) * (torch.rand(9, 40) < 0.05)
    features[3] = 0
    features[8] = 0
    found = _project_sparse(features, weight, 0.0)
    torch.testing.assert_close(found, F.linear(features, weight))
    (mine,) = torch.autograd.grad(found.square().sum(), weight)
    (plain,) = torch.autograd.grad(F.linear(features, weight).square().sum(), weight)
    torch.testing.assert_close(mine, plain)
    assert _project_sparse(torch.randn(9, 40), weight, 0.0) is None
    assert _project_sparse(features.requires_grad_(), weight, 0.0) is None


def test_dropout_of_mostly_zero_features_has_the_right_mean():
    features = torch.zeros(2000, 10)
    features[:, 3] = 2.0
    dropped = _project_sparse(features, torch.eye(10), 0.6)
    assert set(dropped[:, 3].unique().tolist()) == {0.0, 5.0}
    assert float(dropped[:, 3].mean()) == pytest.approx(2.0, abs=0.2)
    assert (dropped[:, :3] == 0).all()


def test_gradients_reach_every_parameter():
    layer = GraphAttention(input_dim=5, head_dim=4, num_heads=2, dropout=0.3)
    layer(torch.randn(6, 5), Neighbourhoods(*starts_of(LISTS))).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in layer.parameters())


@pytest.mark.parametrize("score", ["gat", "gatv2"])
@pytest.mark.parametrize(
    ("starts", "neighbours", "problem"),
    [
        ([0, 1, 2, 3], [1, 2, 10**9], "neighbours must be from 0 to 2, got 1000000000"),
        ([0, 1, 2, 3], [1, 2, -7], "neighbours must be from 0 to 2, got -7"),
        ([0, 1, 2, 10**8], [1, 2, 0], "starts must rise from 0 to the number of entries, 3"),
        ([0, 3, 2, 3], [1, 2, 0], "starts must rise"),
        ([0, 1, 3], [1, 2, 0], "3 nodes need 4 starts, got 3"),
    ],
)
def test_kernels_never_read_beyond_the_nodes(score, starts, neighbours, problem):
    layer = GraphAttention(input_dim=2, head_dim=3, num_heads=2, score=score)
    near = Neighbourhoods(torch.tensor(starts), torch.tensor(neighbours))
    with pytest.raises((ValueError, IndexError, RuntimeError), match=problem if native.library() else None):
        layer(torch.randn(3, 2), near)


def test_numbers_of_neighbours_have_64_bits():
    near = Neighbourhoods(torch.tensor([0, 1, 2]), torch.tensor([1, 0], dtype=torch.int32))
    with pytest.raises(ValueError, match="neighbours must be int64"):
        near.check(2)
    with pytest.raises(ValueError, match="starts must be int64"):
        Neighbourhoods(torch.tensor([0, 1, 2]).int(), torch.tensor([1, 0])).check(2)


def test_a_model_with_the_graph_inside_answers_as_without():
    torch.manual_seed(0)
    model = GAT(dim=3, classes=2, hops=2, num_heads=2, head_dim=5).eval()
    features, starts, neighbours = (
        torch.randn(5, 3),
        torch.tensor([0, 2, 3, 4, 5, 7]),
        torch.tensor([1, 4, 2, 3, 4, 0, 1]),
    )
    nodes = torch.tensor([0, 3])
    with torch.no_grad():
        inside = model.over(features, starts, neighbours)(nodes)
        assert torch.allclose(inside, model(nodes, features, starts, neighbours), atol=1e-6)
