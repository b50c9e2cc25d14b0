"""The code in the documents runs as it stands."""

import pytest

from saccade import aggregations, losses, scores, selections
from saccade.cli import main
from saccade.configuration.files import shipped
from saccade.evaluation import MEANINGS
from tests.docs.code_blocks import ROOT, execute, python_blocks

DOCUMENTS = (
    "README.md",
    "CONTRIBUTING.md",
    "docs/index.md",
    "docs/attention.md",
    "docs/choose.md",
    "docs/training.md",
    "docs/tasks.md",
    "docs/sources.md",
    "docs/documents.md",
    "docs/structures.md",
    "docs/record.md",
    "docs/alignments.md",
    "docs/explorer.md",
    "docs/pairs.md",
    "docs/bert.md",
    "docs/scale.md",
    "docs/export.md",
)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_block_runs(name, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    for registry in (scores.scores, selections.selections):  # what an example registers is forgotten afterwards
        monkeypatch.setattr(registry, "_members", dict(registry._members))
    assert python_blocks(name)
    execute(name)


def test_readme_is_short_and_has_a_row_for_every_domain() -> None:
    text = (ROOT / "README.md").read_text()
    assert text.count("\n") < 150
    folders = {name.partition("/")[0] for name in shipped()}
    assert not [folder for folder in folders if f"`saccade train {folder}/" not in text]


def test_members_page_shows_what_its_command_prints(capsys) -> None:
    text = (ROOT / "docs" / "members.md").read_text()
    command = text.partition("saccade select ")[2].partition("\n")[0]
    assert main(["select", *command.split()]) == 0
    assert f"```\n{capsys.readouterr().out}```" in text


def test_members_page_names_every_member() -> None:
    text = (ROOT / "docs" / "members.md").read_text()
    registries = (scores.scores, selections.selections, aggregations.aggregations)
    names = [member.__name__ for registry in registries for _, member in registry.items()]
    assert not [name for name in names if f"[[{name}]]" not in text]
    assert not [name for name in losses.__all__ if f"`{name}`" not in text]


def test_alignments_page_names_every_measure() -> None:
    text = (ROOT / "docs" / "alignments.md").read_text()
    assert not [name for name in MEANINGS if f"`{name}`" not in text]
