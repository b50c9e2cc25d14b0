"""Packed linear layers give the numbers of plain ones."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from saccade.kernels import dense
from saccade.kernels.dense import Dense


@pytest.fixture(params=["packed", "plain"])
def _kind(request, monkeypatch):
    if request.param == "plain":
        monkeypatch.setattr(dense, "pack_weight", lambda weight: None)


@pytest.mark.usefixtures("_kind")
@pytest.mark.parametrize("activation", [None, F.gelu, F.relu])
@pytest.mark.parametrize("rows", [1, 7, 131])
def test_several_layers_are_one(activation, rows):
    one, other = nn.Linear(13, 17), nn.Linear(13, 5)
    inputs = torch.randn(rows, 13)
    expected = torch.cat([one(inputs), other(inputs)], dim=1)
    with torch.no_grad():
        found = Dense(one, other, activation=activation)(inputs)
    torch.testing.assert_close(found, expected if activation is None else activation(expected), rtol=0, atol=1e-5)


@torch.no_grad()
def test_other_types_are_plain():
    layer = nn.Linear(13, 17).double()
    prepared = Dense(layer, activation=F.gelu)
    assert prepared.packed is None
    inputs = torch.randn(3, 13, dtype=torch.float64)
    torch.testing.assert_close(prepared(inputs), F.gelu(layer(inputs)))
