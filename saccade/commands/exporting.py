"""The command that writes a model for other programs: export."""

from __future__ import annotations

import sys
from typing import Any


def export(run: str, *, format: str, output: str, trust_classes: bool = False, **format_options: Any) -> None:
    """Write a trained model for programs other than Saccade.

        saccade export runs/model --format onnx --output exported

    `saccade list formats` lists the formats with their options. If a format cannot express a part of the model, the
    command names that part before it does any work. An earlier export in the same folder is replaced once the new one
    is complete.

    Args:
        run: the folder of a trained model.
        format: the format to write.
        output: the folder to write, or the file if the format is a single file.
        trust_classes: allow classes that are not Saccade's, which runs their code.
    """
    from saccade.commands.interrupting import leaving_at_once
    from saccade.configuration.catalogue import catalogue
    from saccade.registry import nearest

    known = catalogue()["formats"].find(format)
    if known is None:
        raise ValueError(f"--format: unknown {format!r:.60}.{nearest(format, catalogue()['formats'].members)}")
    options = {name: value for name, value in format_options.items() if value is not None}
    for name in options:
        if name not in known.parameters:
            flags = [f"--{each.replace('_', '-')}" for each in known.parameters]
            own = f"It takes {', '.join(flags)}." if flags else "It takes none."
            raise ValueError(f"--{name.replace('_', '-')} is not an option of the format {format}. {own}")
    with leaving_at_once():
        from saccade.export import export as write
        from saccade.runs import load

    path = write(load(run, trust=trust_classes), output, format=format, **options)
    print(f"Wrote {path} ({_size(path)}).", file=sys.stderr)


def _size(path: Any) -> str:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return f"{sum(file.stat().st_size for file in files) / 1e6:,.1f} MB"
