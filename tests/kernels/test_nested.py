"""Tensors in nested structures, compared with PyTorch's own trees."""

from typing import NamedTuple

import pytest
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from saccade.kernels.nested import map_tensors, tensors_in, with_tensors


class Pair(NamedTuple):
    first: Tensor
    second: object


def tree():
    return Pair(torch.ones(2), {"a": [torch.zeros(3), (torch.ones(1),)], "b": (), "c": torch.ones(4)})


def test_the_same_as_pytree():
    leaves, structure = pytree.tree_flatten(tree())
    assert all(map(torch.equal, tensors_in(tree()), leaves))
    doubled = map_tensors(lambda each: each * 2, tree())
    found, same = pytree.tree_flatten(doubled)
    assert same == structure
    assert all(torch.equal(got, leaf * 2) for got, leaf in zip(found, leaves, strict=True))
    rebuilt, same = pytree.tree_flatten(with_tensors(tree(), [leaf + 1 for leaf in leaves]))
    assert same == structure
    assert all(torch.equal(got, leaf + 1) for got, leaf in zip(rebuilt, leaves, strict=True))
    added = map_tensors(torch.add, tree(), doubled)
    assert all(torch.equal(got, leaf * 3) for got, leaf in zip(tensors_in(added), leaves, strict=True))


def test_other_values_stay():
    assert map_tensors(lambda each: each + 1, (None, 3, torch.ones(()))) == (None, 3, torch.tensor(2.0))
    with pytest.raises(ValueError, match="shorter"):
        map_tensors(torch.add, (torch.ones(1), torch.ones(1)), (torch.ones(1),))
