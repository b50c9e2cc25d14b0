"""Attention through layers, and the greatest flow through a graph."""

import random
from itertools import combinations

import pytest
import torch

from saccade.interpretation.alignments import flow, rollout
from saccade.interpretation.alignments.max_flow import FlowGraph


def attention(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64).mul(2).softmax(dim=-1)


def least_cut(nodes, edges, source, sink) -> float:
    """Every way to part the nodes."""
    others = [node for node in range(nodes) if node not in (source, sink)]
    sides = ({source, *chosen} for size in range(len(others) + 1) for chosen in combinations(others, size))
    return min(sum(c for start, end, c in edges if start in side and end not in side) for side in sides)


@pytest.mark.parametrize("seed", range(12))
def test_the_greatest_flow_is_the_least_cut(seed) -> None:
    draw = random.Random(seed)
    nodes = 7
    edges = [(a, b, draw.random()) for a in range(nodes) for b in range(nodes) if a != b and draw.random() < 0.45]
    graph = FlowGraph(nodes, edges)
    for sink in range(1, nodes):
        assert graph.max_flow(0, sink) == pytest.approx(least_cut(nodes, edges, 0, sink), abs=1e-12)


def test_flow_may_have_to_turn_back() -> None:
    # The shortest path 0-1-4-5 blocks both others; the greatest flow of 2 takes it back.
    edges = [(0, 1, 1), (0, 2, 1), (2, 3, 1), (3, 4, 1), (1, 4, 1), (4, 5, 1), (1, 6, 1), (6, 7, 1), (7, 5, 1)]
    assert FlowGraph(8, edges).max_flow(0, 5) == 2
    assert FlowGraph(3, [(0, 1, 1)]).max_flow(0, 2) == 0


def test_rollout_is_the_product_of_the_mixed_layers() -> None:
    layers = [attention(2, 3, 5, 5) for _ in range(4)]
    wanted = torch.eye(5, dtype=torch.float64)
    for weights in layers:
        wanted = (0.5 * weights.mean(1) + 0.5 * torch.eye(5)) @ wanted
    found = rollout(layers)
    assert torch.allclose(found, wanted)
    assert torch.allclose(found.sum(-1), torch.ones(2, 5, dtype=torch.float64))
    plain = [weights[0, 0] for weights in layers]
    assert torch.allclose(rollout(plain, residual=0.0), plain[3] @ plain[2] @ plain[1] @ plain[0])
    assert torch.equal(rollout(layers, residual=1.0)[1], torch.eye(5, dtype=torch.float64))
    assert torch.allclose(rollout([weights[1] for weights in layers]), found[1])  # three dimensions mean heads


@pytest.mark.parametrize("function", [rollout, flow])
def test_layers_or_heads_is_asked(function) -> None:
    with pytest.raises(TypeError, match=r"one tensor \(3, 5, 5\): pass list\(tensor\) if its first axis is layers"):
        function(attention(3, 5, 5))


def test_flow_through_one_layer_is_the_layer() -> None:
    weights = attention(3, 5, 5)
    assert torch.allclose(flow([weights]), rollout([weights]))


def test_flow_by_networkx() -> None:
    networkx = pytest.importorskip("networkx")
    layers = [attention(2, 5, 5) for _ in range(3)]
    found = flow(layers)
    graph = networkx.DiGraph()
    for depth, weights in enumerate(layers):
        mixed = (weights.mean(0) + torch.eye(5)) / 2
        for row in range(5):
            for column in range(5):
                graph.add_edge((depth + 1, row), (depth, column), capacity=mixed[row, column].item())
    for row in range(5):
        for column in range(5):
            wanted = networkx.maximum_flow_value(graph, (3, row), (0, column))
            assert found[row, column].item() == pytest.approx(wanted, abs=1e-9)
    assert torch.equal(flow(layers, queries=[4, 1]), found[[4, 1]])
    assert (found >= rollout([weights.mean(0) for weights in layers]) - 1e-9).all()  # rollout is a flow among others


def test_rows_without_weight_stay_empty() -> None:
    weights = torch.zeros(3, 3)
    weights[0, 1] = 1.0
    assert torch.equal(rollout([weights], residual=0.0), weights)
    assert torch.equal(flow([weights], residual=0.0).float(), weights)


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="layers is empty"):
        rollout([])
    with pytest.raises(ValueError, match=r"residual must be from 0 to 1, got 1\.5"):
        rollout([torch.eye(3)], residual=1.5)
    with pytest.raises(ValueError, match=r"got \(3, 5\)"):
        flow([torch.ones(3, 5)])
    with pytest.raises(ValueError, match="same number of tokens, got 3 and 5"):
        rollout([torch.eye(3), torch.eye(5)])
    with pytest.raises(ValueError, match="one sequence at a time"):
        flow([torch.ones(2, 3, 5, 5)])
