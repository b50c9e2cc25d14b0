"""Chosen rows with more behind them, as by indexing and concatenation."""

import pytest
import torch

from saccade.kernels.grow import grow, grow_reference


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("length", [0, 1, 7])
@pytest.mark.parametrize("added", [1, 3])
def test_reference(dtype, length, added):
    old = torch.randn(5, 2, length, 3, dtype=dtype)
    new = torch.randn(4, added, 2, 3, dtype=dtype).transpose(1, 2)  # as heads are split
    rows = torch.tensor([4, 0, 4, 2])
    ours = grow(old, new, rows)
    wanted = torch.stack([torch.cat([old[row], more], dim=1) for row, more in zip(rows.tolist(), new, strict=True)])
    assert torch.equal(ours, wanted)
    assert torch.equal(grow_reference(old, new, rows), wanted)
    assert torch.equal(grow(old[:4], new, None), torch.cat([old[:4], new], dim=2))


def test_gradients_are_those_of_the_reference():
    old, new = torch.randn(3, 2, 5, 7, requires_grad=True), torch.randn(2, 2, 1, 7, requires_grad=True)
    (grow(old, new, torch.tensor([2, 2])) * 3).sum().backward()
    assert old.grad.flatten(1).sum(1).tolist() == [0, 0, 2 * 2 * 5 * 7 * 3]
    assert torch.equal(new.grad, torch.full_like(new, 3))
