"""Imports point downwards only, and nothing depends on one machine."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "saccade"

# From the ground up. A part may import the parts of the rows above its own, and itself; parts of one row do not know
# of each other. A new file or folder of saccade/ needs a place here.
LAYERS = (
    {"checks", "registry", "masks", "kernels"},
    {"structures"},
    {"distributions"},
    {"history"},
    {"scores", "selections", "aggregations", "memory", "reading"},
    {"fast"},
    {"attention"},
    {"multihead", "losses"},
    {"__init__"},
    {"layers"},
    {"encoders"},
    {"decoders"},
    {"search"},
    {"models"},
    {"artifacts"},
    {"data", "locks"},
    {"interpretation"},
    {"evaluation"},
    {"tasks"},
    {"training", "workers"},
    {"configuration"},
    {"provenance"},
    {"card", "run_folder"},
    {"run"},
    {"run_training"},
    {"commands"},
    {"cli"},
    {"__main__"},
)
RANK = {part: rank for rank, layer in enumerate(LAYERS) for part in layer}
FILES = sorted(PACKAGE.rglob("*.py"))


def part_of(path: Path) -> str:
    """`scores` for saccade/scores/dot.py, `masks` for saccade/masks.py."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def module_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run at import, those under `if TYPE_CHECKING` aside."""
    for node in body:
        yield node
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from module_level(node.orelse)
        elif isinstance(node, ast.If | ast.With | ast.ClassDef):
            yield from module_level([*node.body, *getattr(node, "orelse", [])])
        elif isinstance(node, ast.Try):
            handlers = [statement for handler in node.handlers for statement in handler.body]
            yield from module_level([*node.body, *handlers, *node.orelse, *node.finalbody])


def imported_parts(path: Path) -> Iterator[str]:
    """The parts of Saccade that a file imports; a name of the package itself counts as `__init__`."""
    for node in module_level(ast.parse(path.read_text()).body):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} is a relative import: write it from saccade."
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            package, _, inner = name.partition(".")
            if package == "saccade":
                part = inner.partition(".")[0]
                yield part if part in RANK else "__init__"


def test_every_part_has_a_place() -> None:
    assert {part_of(path) for path in FILES} <= set(RANK)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_downwards(path: Path) -> None:
    own = part_of(path)
    upwards = {part for part in imported_parts(path) if part != own and RANK[part] >= RANK[own]}
    assert not upwards, f"{own} (row {RANK[own]}) imports {upwards}"


def test_an_upward_import_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(
        "try:\n    from saccade import Attention, masks\nexcept ImportError:\n    import saccade.scores.dot\n"
    )
    assert list(imported_parts(path)) == ["__init__", "masks", "scores"]


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
