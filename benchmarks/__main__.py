"""Runs the benchmarks, prints one table and writes it as JSON."""

import argparse
import importlib
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

import torch

import benchmarks
from saccade.registry import nearest


def main() -> int:
    names = benchmark_names()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=benchmarks.__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"by default, all of: {', '.join(names)}")
    parser.add_argument("--json", type=Path, default=Path("build/benchmarks.json"), help="where to write the table")
    parser.add_argument("--repeats", type=int, default=15, help="pairs of timings, whose median ratio is used")
    parser.add_argument("--strict", action="store_true", help="fail if a required ratio is missed")
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in names:
            parser.error(f"unknown benchmark {name!r}.{nearest(name, names)}")

    rows = []
    for name in arguments.names or names:
        for case in importlib.import_module(f"benchmarks.{name}").cases():
            print(f"{name}: {case.what} ...", file=sys.stderr)
            rows.append(row := measured(name, case, arguments.repeats))
            print(f"  {times(row.get('ratio'))} {case.against}: {row['verdict']}", file=sys.stderr, flush=True)
    print(table(rows))
    environment = {
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
    }
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps({"environment": environment, "rows": rows}, indent=2) + "\n")
    return int(arguments.strict and any(row["verdict"].startswith(("MISS", "FAILED")) for row in rows))


def benchmark_names() -> list[str]:
    """The files of this package that have a function `cases`. Imports none of them: some need an optional peer."""
    return sorted(file.stem for file in Path(__file__).parent.glob("*.py") if "\ndef cases(" in file.read_text())


def measured(name: str, case: Any, repeats: int) -> dict[str, Any]:
    row = {"benchmark": name, "what": case.what, "against": case.against, "must": case.must, "aim": case.aim}
    try:
        result = case.measure(repeats)
    except (ImportError, FileNotFoundError) as error:
        return {**row, "verdict": f"skipped: {error}"}
    except RuntimeError as error:
        return {**row, "verdict": f"FAILED: {error}"}
    taken = {"ratio": result.ratio, "ours": result.ours, "peer": result.peer, "unit": result.unit}
    return {**row, **taken, "verdict": verdict(result.ratio, case.must, case.aim)}


def verdict(ratio: float, must: float | None, aim: float | None) -> str:
    if must is not None and ratio < must:
        return "MISS"
    if aim is None:
        return "PASS"
    return "PASS, aim reached" if ratio >= aim else "PASS, aim missed"


def table(rows: list[dict[str, Any]]) -> str:
    header = ["what", "against", "ours", "peer", "ratio", "must", "aim", "verdict"]
    lines = [header]
    for row in rows:
        if "ratio" in row:
            unit = row["unit"]
            figures = [f"{row['ours']:.3g} {unit}", f"{row['peer']:.3g} {unit}", times(row["ratio"])]
        else:
            figures = ["", "", ""]
        lines.append([row["what"], row["against"], *figures, times(row["must"]), times(row["aim"]), row["verdict"]])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    joined = [" | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    return "\n".join(f"| {line} |" for line in joined)


def times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.3g}x"


if __name__ == "__main__":
    sys.exit(main())
