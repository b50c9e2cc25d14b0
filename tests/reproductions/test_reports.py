"""What reproductions leave behind, and how they are found."""

import json

import pytest

from reproductions.__main__ import main
from reproductions.report import earlier, markdown_table, publish
from tests.reproductions.scripts import ROOT

FOLDERS = sorted(script.parent for script in ROOT.glob("*/run.py"))


def test_an_unknown_name_is_named_with_the_nearest(capsys) -> None:
    assert main(["seq2seq-lengths"]) == 2
    assert "Did you mean 'seq2seq-length'?" in capsys.readouterr().err


def test_numbers_in_a_table() -> None:
    table = markdown_table(["a", "b", "c"], [["x", 1234, 5.678]])
    assert table == "| a | b | c |\n| --- | --- | --- |\n| x | 1,234 | 5.7 |\n"


def test_the_table_takes_its_place_in_the_readme(tmp_path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("Before.\n<!-- measured -->\nold\n<!-- /measured -->\nAfter.\n")
    for table in ("| first |\n", "| second |\n"):
        publish(tmp_path / "results", results={"figure": 7}, table=table)
    assert readme.read_text() == "Before.\n<!-- measured -->\n\n| second |\n\n<!-- /measured -->\nAfter.\n"
    assert json.loads((tmp_path / "results" / "results.json").read_text())["figure"] == 7
    assert earlier(tmp_path / "results") == {"figure": 7}
    assert earlier(tmp_path) == {}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_readme_says_claim_paper_and_command_and_shows_what_was_measured(folder) -> None:
    readme = (folder / "README.md").read_text()
    assert f"make reproduce NAME={folder.name}" in readme
    assert "arXiv:" in readme
    assert "minutes" in readme
    table = folder / "results" / "table.md"
    if table.is_file():
        assert table.read_text() in readme


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_script_takes_the_arguments_that_all_share(folder) -> None:
    assert "ArgumentParser(" not in (folder / "run.py").read_text(), "see reproductions/arguments.py"
