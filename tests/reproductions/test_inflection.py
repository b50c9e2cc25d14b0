"""The command of the reproduction at toy scale."""

import gzip
import json

import pytest

from tests.reproductions.scripts import script

inflection = script("inflection")
ROWS = [("walk", "walked", "V;PST"), ("go on", "went on", "V;PST"), ("see", "sees", "V;3;SG;PRS"), ("a", "as", "N;PL")]


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    text = "".join("\t".join(row) + "\n" for row in ROWS * 5)
    for language in ("english", "latin"):
        for part in ("train-medium", "dev", "uncovered-test"):
            (folder / f"{language}-{part}.gz").write_bytes(gzip.compress(text.encode()))
    (folder / "latin-dev.gz").unlink()
    (folder / "latin-dev").write_text(text)
    return folder


def test_files(data) -> None:
    assert inflection.languages_of(data, "medium") == ["english", "latin"]
    assert inflection.languages_of(data, "high") == []
    for name in ("english-dev", "latin-dev"):
        pairs = inflection.read(data, name)
        assert pairs[:2] == [("walk <V;PST>", "walked"), ("go on <V;PST>", "went on")]
        assert len(pairs) == 20


def test_every_model_is_measured_in_every_language(data, tmp_path) -> None:
    small = ["--steps", "2", "--tests", "4"]
    output = tmp_path / "results"
    arguments = ["--data", str(data), "--output", str(output), "--runs", str(tmp_path / "runs"), *small]
    assert inflection.main(arguments) == 0
    found = json.loads((output / "results.json").read_text())["medium"]
    assert set(found) == {"english", "latin"}
    for language in found.values():
        assert list(language) == list(inflection.MODELS)
        assert all(0 <= result["accuracy"] <= 100 and result["steps"] == 2 for result in language.values())
    rows = (output / "table.md").read_text().splitlines()
    assert len(rows) == 2 + 2 + 3
    assert len({row.count("|") for row in rows}) == 1


def test_without_data_it_says_what_it_needs(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.delenv("CONLL2017", raising=False)
    assert script("inflection").main([]) == 0
    assert "--data" in capsys.readouterr().err
    assert inflection.main(["--data", str(tmp_path)]) == 2
