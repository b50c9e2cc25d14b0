"""The Python blocks of a Markdown file."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def python_blocks(name: str) -> list[str]:
    """Padded with empty lines, so that an error points into the file itself."""
    text = (ROOT / name).read_text()
    return [
        "\n" * text.count("\n", 0, found.start(1)) + found[1]
        for found in re.finditer(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    ]


def execute(name: str) -> dict[str, object]:
    """Runs the blocks of a file one after another in one namespace, as a reader would type them."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in python_blocks(name):
        exec(compile(block, name, "exec"), namespace)
    return namespace
