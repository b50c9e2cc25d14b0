"""Arguments whose class a module imports for type checkers alone."""

from functools import partial

import pytest

from saccade.configuration import ConfigError
from saccade.configuration.hints import hint_of
from saccade.models import RNNSearch
from saccade.runs.plan import Plan
from saccade.scores import AdditiveScore, Score
from saccade.selections import MoChA

SIZES = {"query_dim": 7, "key_dim": 7, "hidden_dim": 5}


def test_hints_are_known_that_are_imported_for_type_checkers_alone() -> None:
    assert hint_of(MoChA, "chunk_score") == Score | None
    assert hint_of(MoChA, "width") is int


@pytest.mark.parametrize("score", [{"class": "additive", **SIZES}, partial(AdditiveScore, **SIZES)])
def test_a_score_within_a_selection(score) -> None:
    config = {"class": RNNSearch, "hidden_dim": 7, "online": True}
    plan = Plan(
        {"model": {**config, "selection": {"class": "mocha", "chunk_score": score}}, "trainer": {"max_steps": 3}}
    )
    chunk_score = plan.outline().decoder.attention.selection.chunk_score
    assert isinstance(chunk_score, AdditiveScore)
    assert chunk_score.query_dim == 7
    assert Plan(plan.plain).plain == plan.plain


def test_a_wrong_argument_of_it_is_named() -> None:
    selection = {"class": "mocha", "chunk_score": {"class": "additive", "query_dims": 7}}
    with pytest.raises(ConfigError, match=r"chunk_score \(additive\) has no argument 'query_dims'"):
        Plan({"model": {"class": "rnnsearch", "selection": selection}, "trainer": {"max_steps": 3}})
