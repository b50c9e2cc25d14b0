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
        for part in ("train-medium", "train-high", "dev", "uncovered-test"):
            (folder / f"{language}-{part}.gz").write_bytes(gzip.compress(text.encode()))
    (folder / "latin-dev.gz").unlink()
    (folder / "latin-dev").write_text(text)
    return folder


def test_files(data) -> None:
    assert inflection.languages_of(data) == ["english", "latin"]
    for name in ("english-dev", "latin-dev"):
        pairs = inflection.read(data, name)
        assert pairs[:2] == [("walk <V;PST>", "walked"), ("go on <V;PST>", "went on")]
        assert len(pairs) == 20


def test_models_are_measured_in_every_language(data, tmp_path) -> None:
    models = ["soft", "hard-monotonic"]
    output = tmp_path / "results"
    arguments = ["--data", str(data), "--medium", "english", "--high", "latin", "--models", *models, "--steps", "2"]
    arguments += ["--tests", "4", "--workers", "1", "--output", str(output), "--runs", str(tmp_path / "runs")]
    assert inflection.main(arguments) == 0
    found = json.loads((output / "results.json").read_text())
    assert list(found["medium"]) == ["english"]
    assert list(found["high"]) == ["latin"]
    for language in (found["medium"]["english"], found["high"]["latin"]):
        assert list(language) == models
        assert all(0 <= result["accuracy"] <= 100 and result["steps"] == 2 for result in language.values())
    rows = (output / "table.md").read_text().splitlines()
    assert len(rows) == 2 + (1 + 1) + (1 + 1) + 1
    assert len({row.count("|") for row in rows}) == 1

    trained = sorted((tmp_path / "runs").glob("*/*/*/model.safetensors"))
    written = [file.stat().st_mtime_ns for file in trained]
    assert len(trained) == 4
    assert inflection.main(arguments) == 0, "a second time reads what is trained"
    assert [file.stat().st_mtime_ns for file in trained] == written

    with pytest.raises(SystemExit, match=r"trainer\.seed is 1, not 2"):
        inflection.main([*arguments, "--seed", "2"])
    trained[0].unlink()  # as if it had been interrupted
    assert inflection.main(arguments) == 0
    assert trained[0].is_file()


def test_a_bad_row_is_named(data) -> None:
    (data / "latin-dev").write_text("amo\tamas\tV;2;SG\namo amat\n")
    with pytest.raises(SystemExit, match=r"latin-dev, line 2: .*'amo amat'"):
        inflection.read(data, "latin-dev")


def test_without_data_it_says_what_it_needs(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.delenv("CONLL2017", raising=False)
    assert script("inflection").main([]) == 0
    assert "--data" in capsys.readouterr().err
    assert inflection.main(["--data", str(tmp_path), "--high"]) == 2
    assert inflection.main(["--data", str(tmp_path), "--high", "english", "--medium"]) == 2
    assert "english-train-high" in capsys.readouterr().err
