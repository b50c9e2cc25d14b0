"""Graph attention with the weights of PyTorch Geometric's GATConv and GATv2Conv gives its numbers and gradients."""

import pytest
import torch

from saccade.layers.graph import GraphAttention, Neighbourhoods

pyg = pytest.importorskip("torch_geometric.nn", reason="the peer `torch_geometric` is not installed")

NODES, INPUT, HEADS, DIM = 23, 6, 3, 4


def graph():
    """(2, edges), from and to, all different and without loops; and the same as starts and neighbours."""
    dense = torch.rand(NODES, NODES) < 0.2
    dense[5] = True  # a hub
    dense[7] = False
    dense.fill_diagonal_(False)
    to, source = dense.nonzero(as_tuple=True)
    return torch.stack([source, to]), dense


def near_of(dense, loops=True):
    dense = dense | torch.eye(NODES, dtype=torch.bool) if loops else dense
    degrees = dense.sum(1)
    return Neighbourhoods(torch.cat([torch.zeros(1, dtype=torch.long), degrees.cumsum(0)]), dense.nonzero()[:, 1])


def copy(theirs, ours, name):
    with torch.no_grad():
        if name == "GATConv":
            ours.proj.weight.copy_(theirs.lin.weight)
            ours.attention.score.query_vector.copy_(theirs.att_dst[0])
            ours.attention.score.key_vector.copy_(theirs.att_src[0])
        else:
            ours.proj.weight.copy_(theirs.lin_l.weight)
            ours.attention.score.vector.copy_(theirs.att[0])
        theirs.bias.normal_()
        ours.bias.copy_(theirs.bias)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("name", ["GATConv", "GATv2Conv"])
def test_outputs_and_gradients(name, average, loops, sparse):
    options = {"concat": not average, "add_self_loops": loops}
    if name == "GATv2Conv":
        options["share_weights"] = True
    theirs = getattr(pyg, name)(INPUT, DIM, heads=HEADS, **options)
    if name == "GATv2Conv":
        torch.nn.init.zeros_(theirs.lin_l.bias)  # ours has no bias in the projection
    score = {"GATConv": "gat", "GATv2Conv": "gatv2"}[name]
    ours = GraphAttention(input_dim=INPUT, head_dim=DIM, num_heads=HEADS, score=score, average=average)
    copy(theirs, ours, name)
    edges, dense = graph()
    x = torch.randn(NODES, INPUT)
    if sparse:
        x = x * (torch.rand(NODES, INPUT) < 0.1)
    weights = torch.randn(NODES, DIM if average else HEADS * DIM)
    inputs = [x.clone().requires_grad_(not sparse) for _ in range(2)]  # sparse features never have gradients
    outputs = ours(inputs[0], near_of(dense, loops)), theirs(inputs[1], edges)
    torch.testing.assert_close(*outputs, rtol=1e-5, atol=1e-5)
    for output in outputs:
        (output * weights).sum().backward()
    if not sparse:
        torch.testing.assert_close(inputs[0].grad, inputs[1].grad, rtol=1e-5, atol=1e-5)
    if name == "GATConv":
        pairs = [(ours.proj.weight, theirs.lin.weight), (ours.attention.score.query_vector, theirs.att_dst)]
        pairs.append((ours.attention.score.key_vector, theirs.att_src))
    else:
        pairs = [(ours.proj.weight, theirs.lin_l.weight), (ours.attention.score.vector, theirs.att)]
    for mine, other in [*pairs, (ours.bias, theirs.bias)]:
        torch.testing.assert_close(mine.grad, other.grad.view_as(mine), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["GATConv", "GATv2Conv"])
def test_features_of_edges_separate_projections_and_skips(name):
    options = {"edge_dim": 5, "add_self_loops": False, "residual": True}
    if name == "GATv2Conv":
        options["share_weights"] = False
    theirs = getattr(pyg, name)(INPUT, DIM, heads=HEADS, **options)
    score = {"GATConv": "gat", "GATv2Conv": "gatv2"}[name]
    extra = {"separate": name == "GATv2Conv", "edge_dim": 5, "skip": True}
    ours = GraphAttention(input_dim=INPUT, head_dim=DIM, num_heads=HEADS, score=score, **extra)
    with torch.no_grad():
        if name == "GATConv":
            theirs.att_edge.copy_(theirs.att_src)  # ours adds the edge to the key, which is as general
        else:
            torch.nn.init.zeros_(theirs.lin_l.bias)
            torch.nn.init.zeros_(theirs.lin_r.bias)
            ours.query_proj.weight.copy_(theirs.lin_r.weight)
        copy(theirs, ours, name)
        ours.edge_proj.weight.copy_(theirs.lin_edge.weight)
        ours.skip_proj.weight.copy_(theirs.res.weight)
    edges, dense = graph()
    x, of_edges = torch.randn(NODES, INPUT), torch.randn(edges.shape[1], 5)
    near = near_of(dense, loops=False)
    near.edges = of_edges
    found = theirs(x, edges, of_edges)
    torch.testing.assert_close(ours(x, near), found, rtol=1e-5, atol=1e-5)
