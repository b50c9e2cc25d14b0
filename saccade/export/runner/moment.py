"""Points in time: seconds or milliseconds since 1970, or dates as in ISO 8601; None if unknown."""

from datetime import UTC, datetime


class InputReader:
    def __init__(self, about):
        pass

    def encode(self, value, most=None):
        if value is None or (isinstance(value, str) and not value.strip()):
            return None
        try:
            number = float(value)
        except ValueError:
            date = datetime.fromisoformat(value.strip())
            return (date if date.tzinfo is not None else date.replace(tzinfo=UTC)).timestamp()
        return number / 1000 if abs(number) > 1e11 else number
