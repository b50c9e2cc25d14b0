"""Short names: found, refused with the nearest right one, and checked against constructors."""

import pytest

from saccade import aggregations, scores, selections
from saccade.registry import Registry, constructor_parameters, describe, nearest
from saccade.scores import AdditiveScore, DotScore


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
