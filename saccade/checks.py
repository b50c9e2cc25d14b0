"""What arguments are refused for."""

from numbers import Integral


def check_count(name: str, value: int, least: int = 1) -> None:
    """Refuses what is not a whole number, or below `least`."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number, {least} or more, got {value!r}.")
    if value < least:
        raise ValueError(f"{name} must be {least} or more, got {value}.")
