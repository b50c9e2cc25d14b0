"""Random number generators: seeded together, saved and restored without a pickle."""

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from saccade.artifacts import JsonObject

WORDS = 624
"""The words in the state of a Mersenne twister, which Python, NumPy and PyTorch all use on the CPU."""


def seed_everything(seed: int) -> None:
    """Seeds Python, NumPy and PyTorch on every device."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def random_state() -> dict[str, Any]:
    """The state of all generators of this process, in JSON's types."""
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


def check_random_state(state: JsonObject) -> None:
    """Raises `ArtifactError` unless `set_random_state` can restore this state."""
    version, internal, gauss = state.take_list("python", int, list, float, type(None), length=3)
    _check_words(state, "python[1]", internal, WORDS + 1)
    state.check("python[0]", version, int, least=3, most=3)
    state.check("python[1][624]", internal[-1], int, least=0, most=WORDS)
    state.check("python[2]", gauss, float, type(None))
    kind, keys, position, has_gauss, cached = state.take_list("numpy", str, list, int, float, length=5)
    if kind != "MT19937":
        raise state.wrong("numpy[0]", f"is {str(kind)[:20]!r}, not 'MT19937'")
    _check_words(state, "numpy[1]", keys, WORDS)
    state.check("numpy[2]", position, int, least=0, most=WORDS)
    state.check("numpy[3]", has_gauss, int, least=0, most=1)
    state.check("numpy[4]", cached, float)
    _check_hex(state, "torch", torch.get_rng_state())
    try:
        torch.Generator().set_state(_tensor(state.values["torch"]))
    except RuntimeError as error:  # PyTorch checks its own counters
        raise state.wrong("torch", f"is not a generator's state ({error})") from None
    if "cuda" in state.values and torch.cuda.is_available():
        _check_hex(state, "cuda", torch.cuda.get_rng_state())


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
    """Leaves all generators as they were, so that validation does not change the course of the training."""
    state = random_state()
    try:
        yield
    finally:
        set_random_state(state)


def _check_words(state: JsonObject, key: str, words: Any, count: int) -> None:
    state.check(key, words, list)
    if len(words) != count:
        raise state.wrong(key, f"has {len(words)} values, not {count}")
    for place, word in enumerate(words):
        state.check(f"{key}[{place}]", word, int, least=0, most=2**32 - 1)


def _check_hex(state: JsonObject, key: str, like: torch.Tensor) -> None:
    text = state.take(key, str)
    if len(text) != 2 * len(like) or not set(text) <= set("0123456789abcdef"):
        raise state.wrong(key, f"is not a generator's state of {len(like)} bytes in hexadecimal")


def _tensor(text: str) -> torch.Tensor:
    return torch.tensor(list(bytes.fromhex(text)), dtype=torch.uint8)
