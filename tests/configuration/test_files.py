"""Configurations as files and on the command line."""

import copy

import pytest

from saccade.configuration import ConfigError, override, read_config, shipped

SECTIONS = {
    "model": {"class": "rnnsearch", "hidden_dim": 3, "selection": {"class": "entmax", "alpha": 1.3}},
    "data": {"columns": {"source": "en", "target": "de"}},
    "trainer": {"schedule": "plateau", "seed": 7},
}


@pytest.mark.parametrize(
    ("changes", "section", "expected"),
    [
        ({"model": "{hidden_dim: 5}"}, "model", SECTIONS["model"] | {"hidden_dim": 5}),
        ({"model": "{class: transformer, dim: 64}"}, "model", {"class": "transformer", "dim": 64}),
        ({"model": "transformer"}, "model", "transformer"),
        ({"model.dim": "64", "model": "transformer"}, "model", {"class": "transformer", "dim": "64"}),
        ({"model.dim": "64", "model.class": "transformer"}, "model", {"class": "transformer", "dim": "64"}),
        ({"model.class": "rnnsearch"}, "model", SECTIONS["model"]),
        (
            {"trainer.schedule": "{class: cosine, warmup: 100}"},
            "trainer",
            {"schedule": {"class": "cosine", "warmup": 100}, "seed": 7},
        ),
        (
            {"trainer.schedule": "{class: plateau, factor: 0.3}"},
            "trainer",
            {"schedule": {"class": "plateau", "factor": 0.3}, "seed": 7},
        ),
        ({"trainer": "{seed: 8}"}, "trainer", {"schedule": "plateau", "seed": 8}),
        ({"data.columns": "{source: 2}"}, "data", {"columns": {"source": 2}}),
        ({"data.train": "[a.tsv, b.tsv]"}, "data", SECTIONS["data"] | {"train": ["a.tsv", "b.tsv"]}),
        (
            {"model.selection": "{alpha: 2}"},
            "model",
            SECTIONS["model"] | {"selection": {"class": "entmax", "alpha": 2}},
        ),
        ({"model.selection": "entmax"}, "model", SECTIONS["model"] | {"selection": "entmax"}),
    ],
)
def test_parts_are_set_whole_or_by_argument(changes, section, expected) -> None:
    before = copy.deepcopy(SECTIONS)
    changed = override(SECTIONS, changes)
    assert changed[section] == expected
    assert {name: part for name, part in changed.items() if name != section} == {
        name: part for name, part in SECTIONS.items() if name != section
    }
    assert before == SECTIONS


def test_template_that_begins_with_a_brace_is_text() -> None:
    assert override({}, {"task.source.join": "{} <{}>"}) == {"task": {"source": {"join": "{} <{}>"}}}
    assert override({}, {"model": "{}"}) == {"model": {}}


def test_wrong_yaml_on_the_command_line_is_named() -> None:
    with pytest.raises(ConfigError, match=r"model: '\{class: cosine' is not YAML"):
        override({}, {"model": "{class: cosine"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model: rnnsearch\nmodel: cho\n", "'model' appears twice"),
        ("model: [\n", "not YAML"),
        ("- a\n", "must have sections"),
        (b"task: a\nmodel: \xff\n", "not UTF-8 text: line 2"),
    ],
)
def test_files_that_are_no_configuration(text, message, tmp_path) -> None:
    (tmp_path / "bad.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError, match=message):
        read_config(tmp_path / "bad.yaml")


def test_shipped_configurations_by_name_or_path() -> None:
    assert read_config("translation/rnnsearch") == read_config("configs/translation/rnnsearch.yaml")
    assert read_config(shipped()["dates/rnnsearch"]) == read_config("dates/rnnsearch")
    for name in ("translation/rnnserch", "configs/translation/rnnserch.yml"):
        with pytest.raises(ConfigError, match="Did you mean 'translation/rnnsearch'"):
            read_config(name)
    with pytest.raises(ConfigError, match=r"Did you mean '\w+/rnnsearch'"):
        read_config("rnnsearch.yaml")
    for name in ("translation/gardens", "configs/gardens.yaml", "my.yaml", "transition/x.yaml"):
        with pytest.raises(ConfigError, match="saccade list configs") as raised:
            read_config(name)
        assert "Did you mean" not in str(raised.value)


def test_weights_by_name_replace_a_word():
    config = {"task": {"class": "classification", "class_weights": "balanced"}, "model": {"selection": "entmax"}}
    changed = override(config, {"task.class_weights": "{spam: 3}", "model.selection": "{alpha: 1.2}"})
    assert changed["task"]["class_weights"] == {"spam": 3}
    assert changed["model"]["selection"] == {"class": "entmax", "alpha": 1.2}
