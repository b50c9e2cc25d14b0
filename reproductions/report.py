"""The output of a reproduction: results as JSON, and a table."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

BEGIN, END = "<!-- measured -->\n", "<!-- /measured -->\n"


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table; numbers are rounded to one decimal place."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def earlier(output: Path) -> dict[str, Any]:
    """What `publish` wrote there before, so that a reproduction can be measured part by part; empty if nothing."""
    kept = output / "results.json"
    found: dict[str, Any] = json.loads(kept.read_text()) if kept.is_file() else {}
    found.pop("environment", None)
    return found


def publish(output: Path, *, results: Mapping[str, Any], table: str) -> None:
    """Writes results.json and table.md, and updates the table in the README.md next to the folder, if there is one.

    Args:
        output: `results/` of the reproduction, or another folder.
        results: the results, serialisable as JSON.
        table: the table that the README shows between its two markers.
    """
    output.mkdir(parents=True, exist_ok=True)
    environment = {
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }
    (output / "results.json").write_text(json.dumps({**results, "environment": environment}, indent=1) + "\n")
    (output / "table.md").write_text(table)
    readme = output.parent / "README.md"
    if readme.is_file() and BEGIN in (text := readme.read_text()):
        before, rest = text.split(BEGIN)
        readme.write_text(f"{before}{BEGIN}\n{table}\n{END}{rest.split(END)[1]}")
    print(table)


def _cell(value: object) -> str:
    return f"{value:,.1f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
