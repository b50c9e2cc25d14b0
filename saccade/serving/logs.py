"""The log of a server: one JSON object a line, on standard error."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

USUAL = {*vars(logging.makeLogRecord({})), "color_message"}
ENCODER = json.JSONEncoder(default=str)
"""In ASCII: a logged input may contain lone surrogates, line breaks, or terminal commands."""


class JsonFormatter(logging.Formatter):
    """A record as a JSON object: time, level, event, and whatever `extra` adds."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        extra = {name: value for name, value in vars(record).items() if name not in USUAL}
        shown = {"time": time, "level": record.levelname.lower(), "event": record.getMessage(), **extra}
        if record.exc_info:
            shown["problem"] = self.formatException(record.exc_info)
        return ENCODER.encode(shown)


def log_to_stderr() -> None:
    """Sends what the server and uvicorn log to standard error; uvicorn's own access log is off."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    for name in ("saccade.serving", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(logging.INFO)
        logger.propagate = False
