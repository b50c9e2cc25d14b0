"""Every registered member has a factory in `members.py`, and every factory a member."""

import pytest

from saccade.aggregations import aggregations
from saccade.registry import constructor_parameters
from saccade.scores import scores
from saccade.selections import selections

from .members import AGGREGATIONS, SCORES, SELECTIONS, registered

KINDS = [(scores, SCORES), (selections, SELECTIONS), (aggregations, AGGREGATIONS)]
MEMBERS = [(registry, name) for registry, _ in KINDS for name in registry.names()]


@pytest.mark.parametrize(("registry", "factories"), KINDS, ids=lambda value: getattr(value, "kind", ""))
def test_factories_and_members_agree(registry, factories):
    built = {registered(name) for name in factories}
    missing = sorted(set(registry.names()) - built)
    unknown = sorted(built - set(registry.names()))
    assert not missing, f"registered without a factory in tests/contracts/members.py: {missing}"
    assert not unknown, f"factories in tests/contracts/members.py of no registered member: {unknown}"


@pytest.mark.parametrize(("registry", "name"), MEMBERS, ids=[f"{r.kind}:{n}" for r, n in MEMBERS])
def test_constructor_takes_typed_keywords_only(registry, name):
    for parameter in constructor_parameters(registry.get(name)).values():
        assert parameter.kind is parameter.KEYWORD_ONLY, f"{parameter.name} can be given by position"
        assert parameter.annotation is not parameter.empty, f"{parameter.name} has no type"


@pytest.mark.parametrize(("registry", "name"), MEMBERS, ids=[f"{r.kind}:{n}" for r, n in MEMBERS])
def test_docstring_states_equation_and_shapes(registry, name):
    text = registry.get(name).__dict__.get("__doc__") or ""
    assert text.split("\n")[0].strip().endswith("."), "the first line of the docstring is one sentence"
    assert ".. math::" in text
    assert "Shapes:" in text


@pytest.mark.parametrize(("registry", "name"), MEMBERS, ids=[f"{r.kind}:{n}" for r, n in MEMBERS])
def test_class_is_public(registry, name):
    member = registry.get(name)
    package = __import__(f"saccade.{registry.kind}s", fromlist=["__all__"])
    assert member.__name__ in package.__all__
    assert getattr(package, member.__name__) is member
