import pytest
import torch

from saccade.kernels.top_k import among_largest, largest


@pytest.mark.parametrize("size", [0, 1, 5, 101])
@pytest.mark.parametrize("k", [1, 3, 7])
def test_equal_to_a_stable_sort(size, k):
    x = torch.randint(4, (13, size)).float()  # many ties
    x[0] = -torch.inf
    expected = x.sort(dim=-1, descending=True, stable=True).indices[:, :k]
    assert torch.equal(largest(x, k), expected)
    assert torch.equal(among_largest(x, k), torch.zeros_like(x, dtype=torch.bool).scatter(-1, expected, True))
