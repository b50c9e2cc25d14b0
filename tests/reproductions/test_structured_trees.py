"""The formulas of the reproduction, and its command at toy scale."""

import json
import random

import pytest

from tests.reproductions.scripts import ROOT, script

trees = script("structured-trees")


def depth_of(symbols) -> int:
    """The most parentheses that are open at once."""
    level = deepest = 0
    for symbol in symbols:
        level += (symbol == "(") - (symbol == ")")
        deepest = max(deepest, level)
    assert level == 0
    return deepest


def evaluate_prefix(symbols) -> int:
    symbol = symbols.pop(0)
    if symbol != "(":
        return int(symbol)
    operator, result = symbols.pop(0), None
    while symbols[0] != ")":
        value = evaluate_prefix(symbols)
        result = value if result is None else result + value if operator == "+" else result * value
    symbols.pop(0)
    return result


def test_the_papers_example() -> None:
    formula = ("*", (("+", (("+", (15, 7)), 1, 8)), ("+", (19, 0, 11))))
    assert " ".join(trees.prefix(formula)) == "( * ( + ( + 15 7 ) 1 8 ) ( + 19 0 11 ) )"
    assert " ".join(trees.infix(formula)) == "( ( 15 + 7 ) + 1 + 8 ) * ( 19 + 0 + 11 )"


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 6])
def test_both_notations_have_the_same_value_and_the_depth_that_was_asked_for(depth) -> None:
    generator = random.Random(depth)
    for _ in range(50):
        formula = trees.make_formula(generator, depth)
        symbols, written = trees.prefix(formula), trees.infix(formula)
        assert depth_of(symbols) == depth
        assert depth_of(written) == depth - 1  # the outermost parenthesis is left out
        assert eval(" ".join(written)) == evaluate_prefix(list(symbols))  # digits, operators, parentheses

        def check(formula) -> None:
            if isinstance(formula, int):
                assert 0 <= formula <= 20
            else:
                assert 2 <= len(formula[1]) <= 4
                for part in formula[1]:
                    check(part)

        check(formula)


def test_no_formula_comes_twice_and_depth_four_is_readable() -> None:
    parts = trees.make_data(random.Random(3), 60, 20)
    sources = [source for part in parts for source, _ in trees.together(part)]
    assert len(sources) == len(set(sources)) == 3 * 60 + 3 * 60 + 5 * 20
    assert all(source.startswith("$ ( ") for source in sources)
    lengths = [len(source.split()) for source, _ in parts[0][4]]
    assert sum(20 <= length <= 60 for length in lengths) > 0.8 * len(lengths)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trees")
    small = ["--steps", "2", "--pairs", "7", "--tests", "3", "--output", str(folder / "results")]
    assert trees.main([*small, "--runs", str(folder / "runs")]) == 0
    return folder / "results"


def test_every_model_is_measured_at_every_depth(results) -> None:
    found = json.loads((results / "results.json").read_text())["models"]
    assert list(found) == ["none", "simple", "structured"]
    for model in found.values():
        assert list(model["depths"]) == ["2", "3", "4", "5", "6"]
        assert all(0 <= figures["length_to_failure"] <= 100 for figures in model["depths"].values())
    assert found["simple"]["parameters"] == found["structured"]["parameters"] > found["none"]["parameters"]
    rows = (results / "table.md").read_text().partition("\n\n")[0].splitlines()
    assert len(rows) == 2 + 5
    assert len({row.count("|") for row in rows}) == 1
    assert all((results / name).stat().st_size > 1000 for name in ("depths.png", "trees.png"))


def test_a_training_that_fails_is_told(tmp_path) -> None:
    wrong = ["--steps", "0", "--pairs", "3", "--tests", "1", "--models", "none"]
    assert trees.main([*wrong, "--output", str(tmp_path / "results"), "--runs", str(tmp_path / "runs")]) != 0
    assert not (tmp_path / "results").exists()


def test_the_claim_holds_in_the_committed_figures() -> None:
    found = json.loads((ROOT / "structured-trees" / "results" / "results.json").read_text())["models"]
    none, simple, structured = (
        [found[name]["depths"][str(depth)]["length_to_failure"] for depth in (2, 3, 4)]
        for name in ("none", "simple", "structured")
    )
    assert all(a < b < c for a, b, c in zip(none, simple, structured, strict=True))
    assert structured[1] > simple[1] + 10
