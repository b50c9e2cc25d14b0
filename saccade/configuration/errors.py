"""What can be wrong with a configuration."""

from collections.abc import Sequence

MOST_SHOWN = 50


class ConfigError(ValueError):
    """A configuration that cannot be used; the message names the key, the value and the fix."""


def refuse(problems: Sequence[str]) -> None:
    """Raises one error that lists all problems, one per line, if there are any."""
    if len(problems) > 1:
        more = [f"... and {len(problems) - MOST_SHOWN} more"] if len(problems) > MOST_SHOWN else []
        raise ConfigError("\n".join([f"{len(problems)} problems:", *problems[:MOST_SHOWN], *more]))
    if problems:
        raise ConfigError(problems[0])


def shown(value: object) -> str:
    """A value as an error message quotes it, on one line and never too long."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**40:
        return f"an integer of {value.bit_length()} bits"  # which Python may refuse to print
    text = repr(value[:200] if isinstance(value, str) else value)
    return text if len(text) <= 120 else f"{text[:100]} ... ({len(text)} characters)"
