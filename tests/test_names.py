"""One word, one meaning: no two classes of the library share a name."""

import ast
from collections import defaultdict
from pathlib import Path

import saccade

ROOT = Path(saccade.__file__).parent
ROLES = {"Answerer", "InputReader"}
"""What each module of the exported runner defines: the runner finds a module by the kind of task or input."""


def public_classes(path: Path) -> list[str]:
    """The classes of a module, without those that repeat a role of the exported runner."""
    allowed = ROLES if path.parent == ROOT / "export/runner" else set()
    names = [node.name for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.ClassDef)]
    return [name for name in names if not name.startswith("_") and name not in allowed]


def test_no_two_classes_share_a_name() -> None:
    places = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        for name in public_classes(path):
            places[name].append(str(path.relative_to(ROOT)))
    assert "Attention" in places
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
