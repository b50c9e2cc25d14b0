"""One sum that tells whether numbers are finite."""

import pytest
import torch

from saccade.kernels.finite import surely_finite


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_every_wrong_number_is_noticed(dtype) -> None:
    numbers = torch.linspace(-3, 3, 35, dtype=dtype).reshape(5, 7).requires_grad_()
    assert surely_finite(numbers)
    for wrong in (torch.nan, torch.inf, -torch.inf):
        assert not surely_finite(numbers.detach().index_fill(0, torch.tensor([4]), wrong))
    assert not surely_finite(torch.tensor([torch.inf, -torch.inf], dtype=dtype))


def test_a_sum_that_overflows_is_no_proof_either_way() -> None:
    assert not surely_finite(torch.full((3,), 6e4, dtype=torch.float16))
