"""`build`: what each annotation takes, what it refuses, and in which words."""

import functools
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest

from saccade.configuration import ConfigError
from saccade.configuration.build import Checker, build, check_part
from saccade.configuration.hints import readable
from saccade.history import Coverage, HistoryFeature, Markov
from saccade.layers.choices import make_score, make_selection
from saccade.scores import AdditiveScore, ALiBi, BilinearScore, HistoryScore, Score, SumScore
from saccade.selections import MoChA, Selection, Softmax, TopK
from saccade.training import Adam, Optimiser


@pytest.mark.parametrize(
    ("hint", "value", "expected"),
    [
        (int, 3, 3),
        (int, "64", 64),
        (int, "-1_000", -1000),
        (float, 2, 2.0),
        (float, "1e-3", 0.001),
        (bool, True, True),
        (bool, "false", False),
        (bool, "Yes", True),
        (str, "12", "12"),
        (str, "{a: 1}", "{a: 1}"),
        (Path, "a/b", Path("a/b")),
        (int | None, "null", None),
        (str | None, "null", None),
        (str | None, "none", "none"),
        (str | int, "2", "2"),
        (int | str, 2, 2),
        (Literal["a", "b"], "b", "b"),
        (Literal[0, 1] | None, "1", 1),
        (Literal[0, 1] | None, None, None),
        (list[str], ["a", "b"], ["a", "b"]),
        (list[str] | str, "a", "a"),
        (Sequence[int], ["1", 2], [1, 2]),
        (tuple[float, float], [1, "0.5"], (1.0, 0.5)),
        (tuple[int, ...], [1, 2, 3], (1, 2, 3)),
        (tuple[tuple[float, float], tuple[float, float]], [[1, 2], [3, 4]], ((1.0, 2.0), (3.0, 4.0))),
        (dict[str, str | int], {"a": 1, "b": "c"}, {"a": 1, "b": "c"}),
        (Mapping[str, Any], {"a": {"class": "softmax"}}, {"a": {"class": "softmax"}}),
        (Any, [1, {"class": "os.system"}, None], [1, {"class": "os.system"}, None]),
    ],
)
def test_plain_values(hint, value, expected) -> None:
    made = build(hint, value, "key")
    assert made == expected
    assert type(made) is type(expected)


@pytest.mark.parametrize(
    ("hint", "value", "message"),
    [
        (int, True, "key must be a whole number, got True"),
        (int, 5.0, "key must be a whole number, got 5.0"),
        (int, "1e-3", "key must be a whole number, got '1e-3'"),
        (int, 10**12, "key: must be at most 2,147,483,647, got 1000000000000"),
        (int, "9" * 5000, "key must be a whole number, got '999"),
        (float, 10**400, "at most 2,147,483,647, got an integer of 1329 bits"),
        (float, "nan", "nan is not a finite number"),
        (float, float("inf"), "inf is not a finite number"),
        (bool, 1, "key must be yes or no, got 1"),
        (str, 3, "key must be text, got 3"),
        (str, "x" * 20_000, "longer than 10000 characters"),
        (Literal["a", "b"], "c", "key must be 'a' or 'b', got 'c'"),
        (Literal[1], True, "key must be 1, got True"),
        (Sequence[str], "bleu", "key must be a list of text, got 'bleu'"),
        (tuple[float, float], [1], "key must be a list of 2: a number, a number, got"),
        (list[int], [1, "x"], r"key\[1\] must be a whole number, got 'x'"),
        (dict[str, str | int] | None, 3, "key must be a mapping from text to text or a whole number or null, got 3"),
        (dict[str, int], {"a": []}, r"key\.a must be a whole number, got \[\]"),
        (Selection, "sofmax", "unknown selection 'sofmax'. Did you mean 'softmax'"),
        (Selection, {"alpha": 3}, "key: these arguments need a class"),
        (Selection, 3, "key must be the name of a selection or {class: name, argument: value}, got 3"),
        (Score, {"class": "general"}, r"key \(bilinear\) needs query_dim, key_dim"),
        (Selection, {"class": 3}, "a class is a short name or a dotted path, got 3"),
        (Selection, {"class": "additive"}, "'additive' is a score, not a selection"),
        (Any, object(), "cannot be written to the configuration"),
    ],
)
def test_what_is_refused_is_named(hint, value, message) -> None:
    with pytest.raises(ConfigError, match=message) as raised:
        build(hint, value, "key")
    assert "\n" not in str(raised.value)


def test_deep_and_large_values_are_refused() -> None:
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(ConfigError, match="nested deeper than 32"):
        build(Any, deep, "key")
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ConfigError, match="nested deeper than 32"):
        build(Any, endless, "key")
    with pytest.raises(ConfigError, match="over 20000 values") as raised:
        build(Any, [[0] * 100] * 1000, "key")
    assert len(str(raised.value)) < 2000


def test_every_problem_is_noted() -> None:
    checker = Checker()
    given = {"class": "mocha", "wdth": 3, "noise": "x", "chunk_score": {"class": "sum", "scores": ["dott", "dot"]}}
    checker.value(Selection, given, "selection")
    assert len(checker.problems) == 3
    assert "'wdth'. Did you mean 'width'" in checker.problems[0]
    assert checker.problems[1] == "selection.noise must be a number, got 'x'."
    assert "selection.chunk_score.scores[0]: unknown score 'dott'. Did you mean 'dot'" in checker.problems[2]


def test_messages_quote_what_the_docstring_says_of_lists_and_mappings() -> None:
    class Reads:
        """Reads.

        Args:
            columns: the column of each role, by name or number, such as {source: en, target: de}.
        """

        def __init__(self, *, columns: dict[str, str | int]) -> None:
            self.columns = columns

    with pytest.raises(ConfigError, match=r"data\.columns must be a mapping .* got 'en'.*such as {source: en"):
        check_part(Reads, {"columns": "en"}, "data")


def test_classes_and_their_arguments() -> None:
    assert build(Selection, {"class": "top_k", "k": "3"}, "key").k == 3
    assert build(Optimiser, "adam", "key").betas == (0.9, 0.999)
    assert build(Optimiser | str, "adam", "key") == "adam"  # the constructor looks it up
    assert isinstance(build(Score, {"class": "general", "query_dim": 3, "key_dim": 5}, "key"), BilinearScore)
    summed = build(Score, {"class": "sum", "scores": ["dot", {"class": "alibi", "num_heads": 2}]}, "key")
    assert isinstance(summed, SumScore)
    assert isinstance(summed.members[1], ALiBi)


def test_history_features_by_name() -> None:
    described = {
        "class": "history",
        "query_dim": 3,
        "key_dim": 5,
        "hidden_dim": 7,
        "features": ["markov", {"class": "coverage"}],
    }
    score = build(Score, described, "key")
    assert isinstance(score, HistoryScore)
    assert [type(feature) for feature in score.members] == [Markov, Coverage]
    assert isinstance(build(HistoryFeature, "coverage", "key"), Coverage)


SIZES = {"query_dim": 3, "key_dim": 5, "hidden_dim": 7, "num_heads": 2}


def test_owners_complete_what_lacks_sizes() -> None:
    hint = str | Score | partial[Score]
    given = build(hint, {"class": "additive", "hidden_dim": 64}, "key")
    assert isinstance(given, functools.partial)
    score = make_score(given, **SIZES)
    assert isinstance(score, AdditiveScore)
    assert (score.query_dim, score.key_dim, score.hidden_proj.in_features) == (3, 5, 64)
    nested = {"class": "mocha", "chunk_score": {"class": "additive", "hidden_dim": 4}}
    selection = make_selection(build(str | Selection | partial[Selection], nested, "key"), **SIZES)
    assert isinstance(selection, MoChA)
    assert selection.chunk_score.key_dim == 5
    summed = make_score(build(hint, {"class": "sum", "scores": ["dot", "alibi"]}, "key"), **SIZES)
    assert summed.members[1].num_heads == 2
    with pytest.raises(TypeError, match="AdditiveScore needs key_dim"):
        make_score(given, query_dim=3)
    with pytest.raises(ConfigError, match="no argument 'hiden_dim'"):
        build(hint, {"class": "additive", "hiden_dim": 64}, "key")
    with pytest.raises(ConfigError, match=r"key \(additive\) needs query_dim, key_dim"):
        build(Score, {"class": "additive", "hidden_dim": 64}, "key")


def test_instances_stand_for_their_class_and_arguments() -> None:
    given = TopK(k=3)
    made = build(Selection, given, "key")
    assert isinstance(made, TopK)
    assert made is not given
    assert made.k == 3
    assert build(Optimiser | str, Adam(betas=(0.5, 0.6)), "key").betas == (0.5, 0.6)
    nested = MoChA(width=3, chunk_score=AdditiveScore(query_dim=3, key_dim=5, hidden_dim=7))
    again = build(Selection, nested, "key")
    assert again.width == 3
    assert again.chunk_score.query_dim == 3

    class Mine(Softmax):
        pass

    with pytest.raises(ConfigError, match=r"a Mine cannot be written to the configuration; .*partial\(Mine, \.\.\.\)"):
        build(Selection, Mine(), "key")
    assert isinstance(build(Selection, Mine, "key"), Mine)
    with pytest.raises(ConfigError, match="arguments without names"):
        build(Selection, partial(TopK, 3), "key")
    with pytest.raises(ConfigError, match="AdditiveScore is not a kind of Selection"):
        build(Selection, AdditiveScore, "key")


def test_numbers_of_modules_are_bounded() -> None:
    for value, message in ((10**12, "at most 1,048,576"), (-1, "1 or more"), (0, "1 or more")):
        with pytest.raises(ConfigError, match=f"hidden_dim: must be {message}, got {value}"):
            build(Score, {"class": "additive", "query_dim": 3, "key_dim": 3, "hidden_dim": value}, "key")
    with pytest.raises(ConfigError, match="num_heads: must be at most 1,024"):
        build(Score, {"class": "alibi", "num_heads": 10**9}, "key")


def test_dotted_paths_need_trust(tmp_path, monkeypatch) -> None:
    (tmp_path / "a_selection_of_mine.py").write_text(
        "from saccade.selections import Softmax\n\n\nclass Mine(Softmax):\n    pass\n"
    )
    monkeypatch.chdir(tmp_path)
    before = list(sys.path), set(sys.modules)
    with pytest.raises(ConfigError, match="not a class that comes with Saccade"):
        build(Selection, "a_selection_of_mine.Mine", "key")
    assert (list(sys.path), set(sys.modules)) == before
    made = build(Selection, "a_selection_of_mine.Mine", "key", trust=True)
    assert type(made).__name__ == "Mine"
    assert list(sys.path) == before[0]
    for path, message in (
        ("a_selection_of_mine.Mien", "no 'Mien'. Did you mean 'Mine'"),
        ("nowhere_at_all.Mine", "no module 'nowhere_at_all'"),
        ("saccade.tasks.Task", "saccade.tasks.Task is not a kind of Selection"),
        ("a..b", "not a dotted path"),
    ):
        with pytest.raises(ConfigError, match=message):
            build(Selection, path, "key", trust=True)


def test_readable() -> None:
    assert readable(str | Score | partial[Score] | None) == (
        "the name of a score or {class: name, argument: value} or null"
    )
    assert readable(list[Score]) == "a list of the name of a score or {class: name, argument: value}"
