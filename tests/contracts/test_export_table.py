"""The table of `docs/export.md` says of each model what the formats accept."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from saccade.export.ctranslate2 import check_ctranslate2
from saccade.export.huggingface import HuggingFace
from saccade.export.page import check_page
from saccade.export.refusing import check_graphs
from saccade.models.quantised import quantisable

from .exported import CASES

PAGE = Path(__file__).parents[2] / "docs" / "export.md"


def check_int8(run):
    if not quantisable(run.model):
        raise ValueError("nothing to round")


CHECKS = {
    "ONNX, PyTorch": check_graphs,
    "page": check_page,
    "int8": check_int8,
    "CTranslate2": check_ctranslate2,
    "Hugging Face": HuggingFace().check,
}


def accepted(case):
    """The formats that take a model."""
    found = set()
    for name, check in CHECKS.items():
        try:
            check(SimpleNamespace(task=case.task, model=case.model, folder=Path("run")))
        except ValueError:
            continue
        found.add(name)
    return found


def written():
    """The rows of the table: the formats of each model."""
    lines = PAGE.read_text(encoding="utf-8").partition("| model | ")[2].partition("\n\n")[0].splitlines()
    names = [cell.strip() for cell in lines[0].strip("| ").split("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    return {re.sub("`", "", row[0]): {n for n, cell in zip(names, row[1:], strict=True) if cell} for row in rows}


@pytest.mark.slow
def test_the_table_is_that_of_the_contract(tmp_path):
    assert written() == {name: accepted(make(tmp_path)) for name, make in CASES.items()}
