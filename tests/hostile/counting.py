"""How many hostile cases were tried, and what the worst of them took.

Each fuzzer is given some seconds. With SACCADE_FUZZ_SECONDS in the environment it gets that many, and goes on until it
has tried as many cases as it must; the counts are printed when the tests have ended.
"""

import contextlib
import os
import re
import resource
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass

SECONDS = float(os.environ.get("SACCADE_FUZZ_SECONDS", "0"))
"""For each fuzzer; 0 if only a few cases are tried."""
SLOW = 5.0
"""Seconds of computing for one case, which a busy machine changes less than those of the clock."""
MUCH = 500
"""Megabytes for one case, beyond what the process had before."""
STUCK = 300
"""Seconds of the clock after which a case is said to hang."""


class Cases:
    """The cases of one fuzzer: `while cases.more(): with cases.case(...): ...`.

    Args:
        what: what they are, for the report.
        seconds: how long to go on by default.
        least: how many to try at least by default.
        most: how many to try at most by default.
        wanted: how many to try at least if SACCADE_FUZZ_SECONDS is given.
    """

    def __init__(self, what, *, seconds=3.0, least=10, most=10**9, wanted):
        self.what, self.outcomes, self.took, self.grew = what, Counter(), 0.0, 0.0
        self._seconds, self._least, self._most = (SECONDS, wanted, 10**9) if SECONDS else (seconds, least, most)
        self._began = time.monotonic()

    def more(self):
        """Whether there is to be another case."""
        count = self.outcomes.total()
        return count < self._least or (count < self._most and time.monotonic() - self._began < self._seconds)

    @contextlib.contextmanager
    def case(self, shown):
        """Runs one case, which must end soon, and must not take much memory."""
        with bounded(shown) as used:
            yield
        self.took, self.grew = max(self.took, used.seconds), max(self.grew, used.megabytes)

    def __str__(self):
        shown = ", ".join(f"{count:,} {name}" for name, count in self.outcomes.most_common())
        worst = f"at most {self.took:.2f} s and {self.grew:.0f} MB each" if self.took else "not measured one by one"
        return f"{self.outcomes.total():,} {self.what} ({shown}): {worst}"


@dataclass
class Used:
    """What a case took."""

    seconds: float = 0.0
    megabytes: float = 0.0


@contextlib.contextmanager
def bounded(shown):
    """Fails if what is done inside takes too long, too much memory, or for ever."""
    used = Used()
    _forget_peak()
    before, began = _memory("VmRSS"), time.process_time()
    with _alarm(shown):
        yield used
    used.seconds, used.megabytes = time.process_time() - began, _memory("VmHWM") - before
    assert used.seconds < SLOW, f"{shown!s:.2000} took {used.seconds:.1f} s"
    assert used.megabytes < MUCH, f"{shown!s:.2000} took {used.megabytes:.0f} MB"


def _memory(name):
    """Megabytes that the process has (VmRSS), or has had since `_forget_peak` (VmHWM)."""
    if sys.platform != "linux":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    with open("/proc/self/status") as status:
        return int(re.search(rf"{name}:\s+(\d+) kB", status.read())[1]) / 1e3


def _forget_peak():
    if sys.platform == "linux":
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")


@contextlib.contextmanager
def _alarm(shown):
    """Ends a case that waits for something that never comes."""

    def stop(number, frame):
        raise AssertionError(f"{shown!s:.2000} hangs")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(STUCK)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
