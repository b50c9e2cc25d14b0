"""Short names: found, refused with the nearest right one, and checked against constructors."""

import copy
import inspect
import pickle

import pytest
import torch

from saccade import aggregations, scores, selections
from saccade.registry import (
    Registry,
    arguments_of,
    constructor_parameters,
    describe,
    nearest,
    registries,
    registry_of,
)
from saccade.scores import AdditiveScore, BilinearScore, DotScore, Score
from saccade.selections import Sparsemax, TopK


def test_create_is_the_constructor():
    made = scores.create("additive", query_dim=3, key_dim=5, hidden_dim=7)
    assert type(made) is AdditiveScore
    assert made.query_proj.weight.shape == (7, 3)
    assert made.key_proj.weight.shape == (7, 5)


def test_unknown_names_get_the_nearest_and_the_list():
    with pytest.raises(
        ValueError, match=r"Unknown score 'aditive'. Did you mean 'additive'\? Choose from: .*scaled_dot"
    ):
        scores.create("aditive")
    with pytest.raises(ValueError, match=r"Unknown selection 'softmaxx'. Did you mean 'softmax'\?"):
        selections.create("softmaxx")
    with pytest.raises(ValueError, match=r"Unknown aggregation 'zzz'. Choose from: "):
        aggregations.create("zzz")


def test_unknown_arguments_get_the_nearest_and_the_list():
    with pytest.raises(
        TypeError, match=r"'additive' has no argument 'query_dims'. Did you mean 'query_dim'\? Choose from"
    ):
        scores.create("additive", query_dims=3, key_dim=5, hidden_dim=7)
    with pytest.raises(TypeError, match=r"score 'dot' has no argument 'scale'. It takes none."):
        scores.create("dot", scale=2.0)


def test_missing_arguments_are_named():
    with pytest.raises(TypeError, match=r"'additive' needs key_dim, hidden_dim; .*AdditiveScore\(query_dim, key_dim"):
        scores.create("additive", query_dim=3)


def test_a_class_without_constructor_takes_nothing():
    assert constructor_parameters(DotScore) == {}
    assert describe(DotScore) == "DotScore()"
    assert type(scores.create("dot")) is DotScore


def test_describe_shows_defaults():
    assert describe(AdditiveScore) == "AdditiveScore(query_dim, key_dim, hidden_dim, bias=False, activation=None)"


def test_one_name_one_member():
    registry = Registry("thing")
    registry.register("one")(int)
    with pytest.raises(ValueError, match="The thing name 'one' is taken by int"):
        registry.register("one")(float)
    assert registry.names() == ["one"]
    assert registry.items() == [("one", int)]
    assert registry.get("one") is int


def test_register_returns_the_class():
    registry = Registry("thing")

    @registry.register("mine")
    class Mine:
        pass

    assert registry.create("mine").__class__ is Mine


def test_nearest_without_a_near_one():
    assert nearest("qqq", ["b", "a"]) == " Choose from: a, b."


def test_aliases_are_other_names_of_the_same_member():
    assert registries["scores"].get("general") is BilinearScore
    assert "general" not in scores.names()
    assert registries["scores"].aliases == {"general": "bilinear"}
    registry = Registry("thing")
    registry.register("one", aliases=["uno"])(type("One", (), {}))
    for taken in ("one", "uno"):
        with pytest.raises(ValueError, match=f"The thing name {taken!r} is taken by One"):
            registry.register(taken)(type("Two", (), {}))
    with pytest.raises(ValueError, match="The thing name 'uno' is taken by One"):
        registry.register("two", aliases=["uno"])(type("Two", (), {}))


def test_registries_with_a_home_are_listed_once():
    assert registry_of(Score) is registries["scores"]
    assert (registries["scores"].kind, registries["scores"].home) == ("score", "saccade.scores")
    before = set(registries)
    assert Registry("thing").plural == "things"
    assert set(registries) == before
    assert registry_of(int) is None


def test_instances_know_the_arguments_that_they_were_made_with():
    made = TopK(k=3)
    assert arguments_of(made) == {"k": 3}
    assert arguments_of(copy.deepcopy(made)) == arguments_of(pickle.loads(pickle.dumps(made))) == {"k": 3}
    assert arguments_of(Sparsemax()) == arguments_of(DotScore()) == {}
    assert arguments_of(torch.nn.Linear(2, 3)) is arguments_of(3) is arguments_of(TopK) is None
    assert not [name for name in made.state_dict() if "arguments" in name]
    assert list(inspect.signature(TopK).parameters) == ["k"]

    class Wider(TopK):
        def __init__(self, *, twice: int) -> None:
            super().__init__(k=2 * twice)

    assert arguments_of(Wider(twice=3)) is None


def test_noting_arguments_does_not_disturb_compilation():
    selection = TopK(k=2)
    compiled = torch.compile(selection, backend="eager", fullgraph=True)
    given = torch.tensor([[3.0, 1.0, 2.0]])
    assert torch.equal(compiled(given).marginals, selection(given).marginals)
