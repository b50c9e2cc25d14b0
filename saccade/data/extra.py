"""Optional libraries."""

from __future__ import annotations

import importlib
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
