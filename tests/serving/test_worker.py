"""The process that answers batches."""

import gc
import subprocess
import sys
import weakref

from fastapi.testclient import TestClient

from saccade.serving.app import make_app

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


def test_the_collector_is_spared_while_a_server_runs(films) -> None:
    class Circle:
        def __init__(self) -> None:
            self.me = self

    garbage = weakref.ref(Circle())
    with TestClient(make_app({"films": films}), "http://localhost"):
        assert garbage() is None
        assert gc.get_freeze_count() > 100_000  # at least what PyTorch consists of
    assert gc.get_freeze_count() == 0
