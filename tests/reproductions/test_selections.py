"""The command at toy scale: three selections on one configuration."""

import json
import random

import pytest

from saccade.configuration import read_config
from tests.reproductions.scripts import ROOT, script

selections = script("selections")


@pytest.fixture
def data(tmp_path):
    """Letters, and the same letters in capitals and in reverse."""
    letters = random.Random(3)
    folder = tmp_path / "data"
    folder.mkdir()
    for split, count in (("train", 40), ("val", 5), ("test_2016_flickr", 7)):
        lines = [letters.choices("abcde", k=letters.randint(2, 7)) for _ in range(count)]
        for language, words in (("en", lines), ("de", [[w.upper() for w in line[::-1]] for line in lines])):
            text = "".join(" ".join(line) + "\n" for line in words)
            (folder / f"{split}.lc.norm.tok.{language}").write_text(text)
    return folder


def test_trains_and_measures_every_selection(data, tmp_path) -> None:
    runs = tmp_path / "runs"
    arguments = ["--data", str(data), "--output", str(tmp_path / "results"), "--runs", str(runs), "--steps", "2"]
    assert selections.main(arguments) == 0
    found = json.loads((tmp_path / "results" / "results.json").read_text())
    sizes = {name: found[name]["parameters"] for name in selections.SELECTIONS}
    assert sizes["sigmoid"] == sizes["softmax"]
    assert sizes["linear_chain"] == sizes["softmax"] + 4
    assert found["softmax"]["picked"] == pytest.approx(1.0, abs=1e-4)
    for name in selections.SELECTIONS:
        assert found[name]["steps"] == 2
        assert "tok:none" in found[name]["signature"]
        assert found[name]["blur"] > 0
        assert list(found[name]["validations"]) == ["2"]
    assert len(found["linear_chain"]["transitions"]) == 2
    assert found["softmax"]["transitions"] is None
    assert (tmp_path / "results" / "attention.png").stat().st_size > 1000
    rows = (tmp_path / "results" / "table.md").read_text().splitlines()
    assert len(rows) == 2 + len(selections.SELECTIONS)
    assert len({row.count("|") for row in rows}) == 1

    configurations = {name: read_config(runs / name / "config.yaml") for name in selections.SELECTIONS}
    chosen = [config["model"].pop("selection") for config in configurations.values()]
    assert chosen[:2] == ["softmax", "sigmoid"]
    assert (chosen[2]["class"], chosen[2]["mass"]) == ("linear_chain", 2.0)  # and nothing else differs:
    assert configurations["sigmoid"] == configurations["linear_chain"] == configurations["softmax"]


def test_without_data_it_says_what_it_needs(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.delenv("MULTI30K", raising=False)
    assert selections.main([]) == 0
    assert "--data" in capsys.readouterr().err
    with pytest.raises(SystemExit) as exit:
        selections.main(["--data", str(tmp_path)])
    assert exit.value.code == 2


def test_all_learnt_to_translate_in_the_committed_figures() -> None:
    found = json.loads((ROOT / "selections" / "results" / "results.json").read_text())
    assert all(found[name]["bleu"] > 15 for name in selections.SELECTIONS)
