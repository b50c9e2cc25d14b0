"""How many cases a fuzzer tried, printed so that `make fuzz` shows it."""

from collections import Counter
from collections.abc import Mapping


def report(what: str, outcomes: Mapping[str, int] | int) -> None:
    """Prints one line: the number of cases, and what became of them."""
    if isinstance(outcomes, int):
        print(f"fuzz: {outcomes:,} {what}")
    else:
        shown = ", ".join(f"{count:,} {name}" for name, count in Counter(outcomes).most_common())
        print(f"fuzz: {sum(outcomes.values()):,} {what} ({shown})")
