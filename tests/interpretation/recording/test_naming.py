"""Calls have the right names after a model that was recorded before has changed."""

import gc
import weakref

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import saccade


class Attending(nn.Module):
    def forward(self, x):
        return F.scaled_dot_product_attention(x, x, x)


class Stack(nn.Module):
    def __init__(self, count=4):
        super().__init__()
        self.layers = nn.ModuleList(Attending() for _ in range(count))
        self.head = nn.Identity()

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def recorded(model):
    """The paths of a recording, in the order of the calls."""
    with saccade.record(model) as trace:
        model(torch.randn(2, 3, 5, 7))
    return trace.paths


def delete(model):
    del model.layers[1]


def take_out(model):
    model.layers[0].taken = [model.layers.pop(1)]  # it lives on


def insert(model):
    model.layers.insert(1, Attending())


def swap(model):
    inside = model.layers._modules
    inside["0"], inside["1"] = inside["1"], inside["0"]


def replace_all(model):
    model.layers._modules.update({str(number): Attending() for number in range(4)})


def set_one(model):
    model.layers[2] = Attending()


def append(model):
    model.layers.append(Attending())


@pytest.mark.parametrize("change", [delete, take_out, insert, swap, replace_all, set_one, append])
def test_lists_that_change(change):
    model = Stack()
    for _ in range(2):
        assert recorded(model) == [f"layers.{number}" for number in range(4)]
    change(model)
    for _ in range(2):
        assert recorded(model) == [f"layers.{number}" for number in range(len(model.layers))]


def test_attributes_that_change():
    model = Stack(1)
    assert recorded(model) == ["layers.0"]
    model.head = Attending()
    assert recorded(model) == ["layers.0", "head"]
    model._modules["head"] = nn.Sequential(nn.Identity(), Attending())  # without registering it
    assert recorded(model) == ["layers.0", "head.1"]
    del model.head
    model.head = nn.Identity()
    assert recorded(model) == ["layers.0"]


def test_what_is_remembered_does_not_keep_a_model():
    model = Stack(2)
    model.layers[0].owner = [model]
    recorded(model)
    ends = [weakref.ref(module) for module in model.modules()]
    del model
    gc.collect()
    assert [end() for end in ends] == [None] * 5
