"""The code in the documents runs as it stands."""

import pytest

from saccade import aggregations, losses, scores, selections
from saccade.cli import main
from saccade.evaluation import MEANINGS
from tests.docs.code_blocks import ROOT, execute, python_blocks

DOCUMENTS = (
    "README.md",
    "CONTRIBUTING.md",
    "docs/index.md",
    "docs/choose.md",
    "docs/training.md",
    "docs/tasks.md",
    "docs/structures.md",
    "docs/record.md",
    "docs/alignments.md",
    "docs/explorer.md",
)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_block_runs(name, monkeypatch) -> None:
    for registry in (scores.scores, selections.selections):  # what an example registers is forgotten afterwards
        monkeypatch.setattr(registry, "_members", dict(registry._members))
    assert python_blocks(name)
    execute(name)


def test_readme_shows_what_its_first_command_prints(capsys) -> None:
    text = (ROOT / "README.md").read_text()
    command = text.partition("saccade select ")[2].partition("\n")[0]
    assert main(["select", *command.split()]) == 0
    assert f"```\n{capsys.readouterr().out}```" in text


def test_readme_names_every_member() -> None:
    text = (ROOT / "README.md").read_text()
    registries = (scores.scores, selections.selections, aggregations.aggregations)
    names = [member.__name__ for registry in registries for _, member in registry.items()]
    assert not [name for name in [*names, *losses.__all__] if f"`{name}`" not in text]


def test_alignments_page_names_every_measure() -> None:
    text = (ROOT / "docs" / "alignments.md").read_text()
    assert not [name for name in MEANINGS if f"`{name}`" not in text]
