"""What an export format is, and how an export is written."""

from __future__ import annotations

import importlib.util
import json
import os
import warnings
from pathlib import Path
from typing import Any, ClassVar

import saccade
from saccade.artifacts import CHECKSUMS, replacing, seal, unsealed, write_file
from saccade.configuration.classes import name_of
from saccade.registry import Registry
from saccade.runs import Run

MARK = "saccade export"
"""The mark at the beginning of an exported file: only a file with this mark is replaced by another export."""

EXPORT = "export.json"
"""The file that identifies an exported folder: only a folder with this file is replaced by another export."""


class Format:
    """A way to write a trained model for programs other than Saccade.

    The constructor takes the options of the format as typed keywords. A new format implements `check` and `write`.
    """

    suffix: ClassVar[str | None] = None
    """The suffix (".html") of the file that the format writes, if it writes one file and no folder."""

    def check(self, run: Run) -> None:
        """Raises `ValueError`, before any work, naming what cannot be exported and why."""
        raise NotImplementedError

    def remarks(self, run: Run) -> list[str]:
        """What the export of a run lacks but can do without: shown as a warning and listed in `export.json`."""
        return []

    def write(self, run: Run, output: Path) -> None:
        """Writes the export.

        Args:
            run: what `check` has accepted.
            output: an empty folder, which takes its final name once this returns; or the file to write, which must
                have `MARK` within its first 1,000 bytes.
        """
        raise NotImplementedError


formats: Registry[Format] = Registry("format", base=Format, home="saccade.export")


def export(run: Run, output: str | os.PathLike[str], *, format: str | Format, **options: Any) -> Path:
    """Writes a run for other programs, and returns where it is.

    An earlier export in the same place is replaced once the new one is complete. A folder with anything else in it is
    rejected.

    Args:
        run: a trained model, as `load` returns it.
        output: the folder to write, or the file if the format is a single file.
        format: the short name of the format, or the format itself.
        options: what the constructor of the format takes, if it is named.
    """
    path = Path(output)
    chosen = formats.load().create(format, **options) if isinstance(format, str) else format
    if options and not isinstance(format, str):
        raise TypeError(f"The format has been made already: give {', '.join(options)} to its constructor.")
    check_output(path, chosen)
    chosen.check(run)
    remarks = chosen.remarks(run)
    for remark in remarks:
        warnings.warn(remark, stacklevel=2)
    if chosen.suffix is not None:
        partial = path.with_name(f".{path.name}.partial")
        try:
            chosen.write(run, partial)
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)
        return path
    with replacing(path) as folder:
        chosen.write(run, folder)
        about: dict[str, Any] = {
            "format": name_of(type(chosen)),
            "run": run.folder.name,
            "saccade": saccade.__version__,
        }
        about |= {"remarks": remarks} if remarks else {}
        write_file(folder / EXPORT, json.dumps(about, indent=2) + "\n")
        names = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
        seal(folder, [name for name in names if name != CHECKSUMS])
    return path


def check_output(path: Path, format: Format) -> None:
    """Raises unless the export can be written there, and would replace nothing but an earlier one."""
    if path == Path() or "\0" in str(path):
        raise ValueError(f"--output: {str(path)!r:.60} is not the name of a file or folder.")
    if format.suffix is not None:
        if path.suffix.lower() != format.suffix:
            raise ValueError(f"--output {path}: this format writes one file: end its name with {format.suffix}.")
        if path.is_dir():
            raise FileExistsError(f"--output {path}: that is a folder; name a file in it.")
        if not path.parent.is_dir():
            raise FileNotFoundError(f"--output {path}: there is no folder {path.parent}.")
        if path.exists() and not _is_marked(path):
            raise FileExistsError(f"--output {path} exists and is not an earlier export: choose another name.")
        return
    if path.exists() and not path.is_dir():
        raise FileExistsError(f"--output {path} is a file; this format writes a folder.")
    names = sorted(file.name for file in path.iterdir()) if path.exists() else []
    others = unsealed(path) if EXPORT in names and CHECKSUMS in names else names
    if others:
        listed = ", ".join(others[:5]) + (", ..." if len(others) > 5 else "")
        raise FileExistsError(f"{path} is not empty (it contains {listed}): choose another folder for the output.")


def _is_marked(path: Path) -> bool:
    with open(path, "rb") as file:
        return MARK.encode() in file.read(1000)


def required(format: str, *modules: str, extra: str = "export") -> None:
    """Raises unless these libraries are installed; the error names the pip command."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise ModuleNotFoundError(
                f'The format {format} needs {module}: pip install "saccade[{extra}]"', name=module
            )
