"""Marginals and their gradients against torch-struct and supar, on equal potentials."""

import pytest
import torch

from benchmarks import structured


@pytest.mark.parametrize("peer", ["torch-struct", "supar"])
@pytest.mark.parametrize(
    "build",
    [
        lambda peer: structured.chain(peer, 3, 11, 2),
        lambda peer: structured.chain(peer, 3, 7, 5),
        lambda peer: structured.tree(peer, 3, 7, True),
        lambda peer: structured.tree(peer, 3, 7, False),
    ],
    ids=["segmentation", "chain", "projective", "non-projective"],
)
def test_same_marginals_and_gradients(build, peer):
    pytest.importorskip(structured.PEERS[peer])
    ours, theirs = build(peer)
    for one, two in zip(ours(), theirs(), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-3, atol=3e-4)


@pytest.mark.parametrize("spread", [1.0, 50.0])
@pytest.mark.parametrize("peer", ["torch-struct", "supar"])
def test_long_chains_are_closer_to_float64_than_theirs(peer, spread):
    pytest.importorskip(structured.PEERS[peer])
    ours, theirs = structured.exact_errors(structured.chain(peer, 3, 256, 2, spread))
    assert ours < 1e-5
    assert ours < theirs


def test_segment_to_segment_loss_is_the_double_loop():
    ours, theirs = structured.segment_to_segment(3, 5, 7)
    for one, two in zip(ours(), theirs(), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-5)
