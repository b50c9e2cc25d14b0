"""Wrong input is refused by an error that names the argument, what was given, and what to do."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import assume, given, settings

from saccade import Attention, MultiHead
from saccade.scores import AdditiveScore, DotScore, ScaledDotScore
from saccade.selections import Softmax

QUERY, KEY, VALUE = 5, 7, 11


@pytest.fixture
def attention():
    return Attention(score=AdditiveScore(query_dim=QUERY, key_dim=KEY, hidden_dim=13))


shapes = st.lists(st.integers(1, 8), min_size=1, max_size=4).map(tuple)


@given(query=shapes, keys=shapes, values=shapes)
@settings(max_examples=200)
def test_any_wrong_shapes_are_refused_by_name(query, keys, values):
    attention = Attention(score=AdditiveScore(query_dim=QUERY, key_dim=KEY, hidden_dim=13))
    right = (
        min(len(query), len(keys), len(values)) >= 2
        and keys[:-1] == values[:-1]
        and query[:-2] == keys[:-2]
        and (query[-1], keys[-1]) == (QUERY, KEY)
    )
    assume(not right)
    with pytest.raises(ValueError, match=r"query|keys|values") as error:
        attention(torch.zeros(query), torch.zeros(keys), torch.zeros(values))
    assert any(str(shape) in str(error.value) for shape in (query, keys, values))


@pytest.mark.parametrize(
    ("query", "keys", "values", "match"),
    [
        ((2, 3, 6), (2, 13, 7), (2, 13, 11), r"query of shape \(2, 3, 6\) has 6 features.*query_dim=5: build it with"),
        ((2, 3, 5), (2, 13, 6), (2, 13, 11), r"keys of shape \(2, 13, 6\) has 6 features.*key_dim=7"),
        ((2, 3, 5), (2, 13, 7), (2, 12, 11), r"keys \(2, 13, 7\) and values \(2, 12, 11\)"),
        ((2, 3, 5), (2, 13, 7), (3, 13, 11), r"values \(3, 13, 11\)"),
        ((4, 3, 5), (2, 13, 7), (2, 13, 11), r"query \(4, 3, 5\).*batch dimensions, got \(4,\) and \(2,\)"),
        ((3, 5), (2, 13, 7), (2, 13, 11), r"batch dimensions, got \(\) and \(2,\)"),
        (
            (5,),
            (13, 7),
            (13, 11),
            r"query must be .* got \(5,\): for a single query, pass query.unsqueeze\(-2\)",
        ),
        ((3, 5), (7,), (7,), r"keys \(7,\)"),
    ],
)
def test_wrong_shapes(attention, query, keys, values, match):
    with pytest.raises(ValueError, match=match):
        attention(torch.zeros(query), torch.zeros(keys), torch.zeros(values))


def test_inner_product_of_different_sizes():
    with pytest.raises(
        ValueError, match=r"ScaledDotScore needs queries and keys of the same size.*\(2, 3, 5\).*\(2, 13, 7\)"
    ):
        Attention(score=ScaledDotScore())(torch.zeros(2, 3, 5), torch.zeros(2, 13, 7))


@pytest.mark.parametrize("wrong", [torch.nan, torch.inf, -torch.inf])
def test_scores_that_are_not_finite(wrong):
    scores = torch.zeros(2, 3, 5)
    scores[1, 2, 4] = wrong
    with pytest.raises(ValueError, match=r"scores must be finite .*(nan|inf) at index \(1, 2, 4\).*with the mask"):
        Softmax()(scores)
    mask = torch.ones(2, 3, 5, dtype=torch.bool)
    mask[1, 2, 4] = False
    assert Softmax()(scores, mask).marginals.isfinite().all()


def test_finite_scores_whose_sum_is_not():
    scores = torch.full((1, 1, 3), torch.finfo(torch.float64).max, dtype=torch.float64)
    torch.testing.assert_close(Softmax()(scores).marginals, torch.full_like(scores, 1 / 3))


def test_query_is_needed(attention):
    with pytest.raises(ValueError, match="query is None, but AdditiveScore compares it"):
        attention(None, torch.zeros(2, 13, KEY))


@pytest.mark.parametrize(("name", "argument"), [("score", "softmax"), ("selection", 3), ("aggregation", DotScore())])
def test_parts_of_the_wrong_kind(name, argument):
    parts = {"score": DotScore(), name: argument}
    with pytest.raises(TypeError, match=f"{name} must be a {name.capitalize()}, got .*saccade.{name}s.create"):
        Attention(**parts)


def test_score_is_needed():
    with pytest.raises(TypeError, match="score"):
        Attention(score=None)


@pytest.mark.parametrize("dropout", [-0.1, 1.0, 2.0])
def test_dropout_out_of_range(dropout):
    with pytest.raises(ValueError, match=rf"dropout must be in \[0, 1\), got {dropout}"):
        Attention(score=DotScore(), dropout=dropout)


def test_constructors_take_keywords_only():
    with pytest.raises(TypeError, match="positional"):
        Attention(DotScore())
    with pytest.raises(TypeError, match="positional"):
        MultiHead(Attention(score=DotScore()), 2, 4)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"num_heads": 0, "query_dim": 6}, "num_heads must be 1 or more, got 0"),
        ({"num_heads": 4, "query_dim": 6}, "query_dim=6 is not a multiple of num_heads=4: give head_dim"),
        ({"num_heads": 4, "query_dim": 8, "num_key_heads": 3}, "num_heads=4 is not a multiple of num_key_heads=3"),
        ({"num_heads": 4, "query_dim": 8, "num_key_heads": 0}, "num_key_heads=0"),
    ],
)
def test_wrong_heads(arguments, match):
    with pytest.raises(ValueError, match=match):
        MultiHead(attention=Attention(score=DotScore()), **arguments)


@pytest.mark.parametrize("argument", ["query", "keys", "values"])
def test_multihead_names_the_wrong_argument(argument):
    module = MultiHead(attention=Attention(score=ScaledDotScore()), num_heads=2, query_dim=6, key_dim=7, value_dim=11)
    given = {"query": torch.zeros(2, 3, 6), "keys": torch.zeros(2, 13, 7), "values": torch.zeros(2, 13, 11)}
    given[argument] = torch.zeros(*given[argument].shape[:-1], 5)
    with pytest.raises(ValueError, match=rf"{argument} of shape .* has 5 features, but MultiHead was built with"):
        module(**given)


def test_appended_masks_of_the_wrong_shape(attention):
    memory = attention.prepare(torch.zeros(2, 5, KEY), torch.zeros(2, 5, VALUE))
    with pytest.raises(ValueError, match=r"mask of appended keys must be \(\*batch, 1, 3\), got \(2, 4, 3\)"):
        memory.append(torch.zeros(2, 3, KEY), torch.zeros(2, 3, VALUE), mask=torch.ones(2, 4, 3, dtype=torch.bool))


@pytest.mark.parametrize("temperature", [0.0, -1.0])
def test_temperature_out_of_range(temperature):
    with pytest.raises(ValueError, match=f"temperature must be above 0, got {temperature}"):
        Softmax(temperature=temperature)
