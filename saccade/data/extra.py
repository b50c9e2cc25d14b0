"""Optional libraries."""

from __future__ import annotations

import importlib
import os
from typing import Any


def required(module: str, extra: str = "train") -> Any:
    """Imports a module on first use; if it is missing, the error says which of Saccade's extras to install."""
    library = module.partition(".")[0]
    try:
        importlib.import_module(library)
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        message = f'This needs the library {library!r}: pip install "saccade[{extra}]"'
        raise ModuleNotFoundError(message, name=library) from None
    return importlib.import_module(module)


def start_ray() -> Any:
    """Connects to the Ray cluster that `RAY_ADDRESS` names or that runs on this machine, or starts one here."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray = required("ray", "ray")
    try:
        ray.init(log_to_driver=False, logging_level="WARNING", include_dashboard=False)
    except Exception as error:  # Ray raises plain exceptions
        reason = (str(error).strip() or type(error).__name__).rstrip(".")
        address = os.environ.get("RAY_ADDRESS")
        if address:
            raise OSError(
                f"Cannot use the Ray cluster RAY_ADDRESS={address!r}: {reason}. Correct it, or unset it."
            ) from error
        raise OSError(
            f"Ray did not start: {reason}. The folder session_latest/logs of Ray's temporary files has the cause; or "
            "do without --engine ray."
        ) from error
    return ray
