"""Imports point downwards only, and nothing depends on one machine."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "saccade"

# From the ground up. A part may import the parts of the rows above its own, and itself; parts of one row do not know
# of each other. A new file or folder of saccade/ needs a place here. The facade `saccade/__init__.py` also re-exports
# names of parts above it, when they are first used: its own imports are not checked.
LAYERS = (
    {"checks", "registry", "masks", "kernels"},
    {"structures"},
    {"distributions"},
    {"history"},
    {"scores", "aggregations", "memory", "reading"},
    {"selections"},
    {"fast"},
    {"attention"},
    {"multihead", "losses"},
    {"__init__"},
    {"layers"},
    {"encoders"},
    {"decoders"},
    {"search"},
    {"models"},
    {"configuration"},
    {"artifacts"},
    {"data", "locks"},
    {"huggingface", "gpt2"},
    {"interpretation"},
    {"evaluation"},
    {"fields"},
    {"tasks"},
    {"training"},
    {"runs"},
    {"serving", "bulk", "export"},
    {"commands"},
    {"cli"},
    {"__main__"},
)
RANK = {part: rank for rank, layer in enumerate(LAYERS) for part in layer}
RUNNER = PACKAGE / "export" / "runner"
"""Copied into exports, where it stands alone: its files import each other."""

FILES = sorted(path for path in PACKAGE.rglob("*.py") if RUNNER not in path.parents)


def part_of(path: Path) -> str:
    """`scores` for saccade/scores/dot.py, `memory` for saccade/memory.py."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> Iterator[str]:
    """The modules of Saccade that a file imports, wherever the import stands, those under TYPE_CHECKING too.

    `from saccade.scores import dot` is `saccade.scores.dot` if there is such a module, and `saccade.scores` otherwise.
    """
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} is a relative import: write it from saccade."
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name.partition(".")[0] == "saccade":
                yield name if file_of(name) else name.rpartition(".")[0]


def file_of(module: str) -> Path | None:
    """The file of a module of Saccade, or None if there is none of this name."""
    place = PACKAGE.joinpath(*module.split(".")[1:])
    return next((file for file in (place / "__init__.py", place.with_suffix(".py")) if file.is_file()), None)


def imported_parts(path: Path) -> Iterator[str]:
    """The parts that a file imports; the package itself is `__init__`."""
    for module in imported(path):
        yield [*module.split("."), "__init__"][1]


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """One cycle of a graph, or nothing."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


def test_every_part_has_a_place() -> None:
    assert {part_of(path) for path in FILES} <= set(RANK)


@pytest.mark.parametrize(
    "path", [path for path in FILES if part_of(path) != "__init__"], ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_imports_point_downwards(path: Path) -> None:
    own = part_of(path)
    upwards = {part for part in imported_parts(path) if part != own and RANK[part] >= RANK[own]}
    assert not upwards, f"{own} (row {RANK[own]}) imports {upwards}"


@pytest.mark.parametrize("part", sorted({part_of(path) for path in FILES} - {"__init__"}))
def test_files_of_a_part_do_not_import_each_other_in_a_circle(part: str) -> None:
    graph = {
        str(path.relative_to(PACKAGE)): {
            str(file.relative_to(PACKAGE))
            for module in imported(path)
            if (file := file_of(module)) is not None and part_of(file) == part
        }
        for path in FILES
        if part_of(path) == part
    }
    found = cycle(graph)
    assert not found, " <- ".join(found)


def test_imports_are_seen_wherever_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(
        "try:\n    from saccade import Attention, masks\nexcept ImportError:\n    import saccade.scores.dot\n"
        "if TYPE_CHECKING:\n    from saccade.models import RNNSearch\n"
        "def later():\n    from saccade.encoders import base\n"
    )
    assert sorted(imported(path)) == [
        "saccade",
        "saccade.encoders.base",
        "saccade.masks",
        "saccade.models",
        "saccade.scores.dot",
    ]
    assert sorted(imported_parts(path)) == ["__init__", "encoders", "masks", "models", "scores"]


def test_a_circle_is_seen() -> None:
    assert cycle({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert set(cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}})) == {"a", "b", "c"}


def test_library_leaves_the_number_of_threads_alone() -> None:
    assert not [path for path in FILES if "set_num_threads" in path.read_text()]


def written_files() -> list[Path]:
    """What belongs to the repository, whether or not it is a clone."""
    folders = [ROOT / name for name in (".ci", "saccade", "tests", "docs", "benchmarks")]
    nested = [path for folder in folders for path in folder.rglob("*") if "__pycache__" not in path.parts]
    apart = (Path(__file__), ROOT / ".git")  # .git is a file in a second worktree, and names the first
    return [path for path in [*ROOT.iterdir(), *nested] if path.is_file() and path not in apart]


def test_nothing_depends_on_one_machine() -> None:
    forbidden = [f"/{folder}/" for folder in ("work", "tmp", "root", "home", "opt", "Users")]
    found = [
        f"{path.relative_to(ROOT)}: {word}"
        for path in written_files()
        for word in forbidden
        if word.encode() in path.read_bytes()
    ]
    assert not found
