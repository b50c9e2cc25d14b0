"""Runs reproductions: `python -m reproductions [NAME [ARGUMENTS]]`; without a name, all of them."""

import os
import subprocess
import sys
from pathlib import Path

from saccade.registry import nearest

FOLDER = Path(__file__).resolve().parent


def main(arguments: list[str]) -> int:
    """Runs each in its own process, and stops at the first failure."""
    names = [script.parent.name for script in sorted(FOLDER.glob("*/run.py"))]
    if arguments and arguments[0] not in names:
        print(f"Unknown reproduction {arguments[0]!r}.{nearest(arguments[0], names)}", file=sys.stderr)
        return 2
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(FOLDER.parent), os.environ.get("PYTHONPATH", "")])}
    for name in arguments[:1] or names:
        print(f"== {name}", flush=True)
        command = [sys.executable, str(FOLDER / name / "run.py"), *arguments[1:]]
        code = subprocess.run(command, env=environment, check=False).returncode
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
