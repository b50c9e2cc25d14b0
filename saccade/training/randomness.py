"""Random number generators: seeded together, saved and restored without a pickle."""

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch


def seed_everything(seed: int) -> None:
    """Seeds Python, NumPy and PyTorch on every device."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def random_state() -> dict[str, Any]:
    """The state of all generators of this process, as JSON can hold it."""
    kind, keys, position, has_gauss, cached = np.random.get_state()
    version, internal, gauss = random.getstate()
    state: dict[str, Any] = {
        "python": [version, list(internal), gauss],
        "numpy": [kind, np.asarray(keys).tolist(), position, has_gauss, cached],
        "torch": bytes(torch.get_rng_state().tolist()).hex(),
    }
    if torch.cuda.is_available():
        state["cuda"] = bytes(torch.cuda.get_rng_state().tolist()).hex()
    return state


def set_random_state(state: dict[str, Any]) -> None:
    """Restores what `random_state` returned."""
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(internal), gauss))
    kind, keys, position, has_gauss, cached = state["numpy"]
    np.random.set_state((kind, np.array(keys, dtype=np.uint32), position, has_gauss, cached))
    torch.set_rng_state(_tensor(state["torch"]))
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(_tensor(state["cuda"]))


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Leaves all generators as they were: validation does not change how training goes on."""
    state = random_state()
    try:
        yield
    finally:
        set_random_state(state)


def _tensor(text: str) -> torch.Tensor:
    return torch.tensor(list(bytes.fromhex(text)), dtype=torch.uint8)
