"""The arguments that reproductions share."""

import argparse
from collections.abc import Iterable
from pathlib import Path


def make_parser(
    folder: Path, description: str | None, *, models: Iterable[str] = (), seed: int | None = None
) -> argparse.ArgumentParser:
    """A parser with `--output` and `--runs`.

    Args:
        folder: that of the reproduction.
        description: what it shows.
        models: if given, `--models` chooses among them; all by default.
        seed: if given, the default of `--seed`.
    """
    parser = argparse.ArgumentParser(prog=f"python -m reproductions {folder.name}", description=description)
    parser.add_argument("--output", type=Path, default=folder / "results", help="folder for tables, plots and JSON")
    parser.add_argument("--runs", type=Path, default=Path("runs") / folder.name, help="folder for the trained models")
    names = list(models)
    if names:
        parser.add_argument("--models", nargs="+", choices=names, default=names)
    if seed is not None:
        parser.add_argument("--seed", type=int, default=seed)
    return parser
