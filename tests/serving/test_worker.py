"""The process that answers batches."""

import subprocess
import sys

LATE = """
import atexit, sys
atexit.register(print, "late", file=sys.stderr)
from saccade.serving.worker import main
main()
"""


def test_a_worker_ends_with_its_input_and_without_tidying_up(reverse) -> None:
    done = subprocess.run([sys.executable, "-c", LATE, str(reverse), "-"], input=b"", capture_output=True, timeout=120)
    assert done.returncode == 0
    assert done.stdout  # it was ready, and said so
    assert b"late" not in done.stderr
