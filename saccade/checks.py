"""Argument checks."""


def check_count(name: str, value: int, least: int = 1) -> None:
    """Rejects a value that is not a whole number or is below `least`."""
    if not hasattr(value, "__index__") or isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number, {least} or more, got {value!r}.")
    if value < least:
        raise ValueError(f"{name} must be {least} or more, got {value}.")
