"""Attention that a model computes itself: a softmax whose result, perhaps after dropout, is multiplied by values."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import torch
from torch import Tensor

from saccade.interpretation.recording.recipes import Captured, Change, Given


class Effect(Enum):
    """What a function does to attention weights."""

    SAME = auto()  # makes other weights of the same meaning: masked, cast, sliced
    KEPT = auto()  # drops some out, or views them differently
    PRODUCT = auto()


EFFECTS = {
    Effect.SAME: (
        *("to", "type", "type_as", "float", "half", "bfloat16", "double", "clone", "contiguous", "nan_to_num"),
        *("masked_fill", "where", "mul", "multiply", "div", "__mul__", "__rmul__", "__truediv__", "__getitem__"),
        *("sub", "__sub__", "add", "__add__", "masked_fill_", "mul_", "div_"),
    ),
    Effect.KEPT: (
        *("dropout", "alpha_dropout", "feature_dropout", "dropout_", "transpose", "permute", "view", "reshape"),
        *("unsqueeze", "squeeze", "expand", "flatten", "unflatten", "movedim", "swapaxes", "mT", "T", "repeat"),
    ),
    Effect.PRODUCT: ("matmul", "__matmul__", "__rmatmul__", "bmm", "baddbmm", "einsum"),
}
EFFECT_OF = {name: effect for effect, names in EFFECTS.items() for name in names}


@dataclass(eq=False)
class _Candidate:
    weights: Tensor
    used: bool = False
    changed: Tensor | None = None


class Softmaxes:
    """Follows the results of softmaxes until a product uses them: only then were they attention.

    It holds weak references, so the model's tensors are freed as usual.

    Attributes:
        paused: if not 0, nothing is followed.
    """

    def __init__(self) -> None:
        self.paused = 0
        self.followed: dict[int, tuple[weakref.ref[Tensor], _Candidate]] = {}

    def begin(self, args: Sequence[Any], kwargs: dict[str, Any], result: Any) -> bool:
        """Follows the result of a softmax over the last axis; other axes are not attention."""
        dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
        if self.paused or not isinstance(result, Tensor) or result.dim() < 2 or dim not in (-1, result.dim() - 1):
            return False
        self._follow(result, _Candidate(result.detach()))
        return True

    def step(self, part: Effect, args: Sequence[Any], kwargs: dict[str, Any], result: Any) -> Captured | None:
        """Takes note of a function that ran, and returns the attention that it completes, if any."""
        if self.paused:
            return None
        candidate = self._candidate(args, kwargs)
        if candidate is None or candidate.used:
            return None
        if part is Effect.PRODUCT:
            candidate.used = True
            return Captured(Given(), {"weights": candidate.weights}) if candidate.weights.dim() > 2 else None
        if isinstance(result, Tensor) and result.is_floating_point():
            self._follow(result, self._derived(candidate, part, result))
        return None

    def changed(
        self, args: Sequence[Any], kwargs: dict[str, Any], find_change: Callable[[], Change | None]
    ) -> tuple[Any, dict[str, Any]]:
        """The arguments of a product, with changed weights if there is a change for them."""
        candidate = None if self.paused else self._candidate(args, kwargs)
        if candidate is None or candidate.weights.dim() < 3:
            return args, kwargs
        if not candidate.used:
            change = find_change()
            if change is not None:
                self._change(candidate, next(self._found((*args, *kwargs.values())))[0], change)
        if candidate.changed is None:
            return args, kwargs
        return self._with(args, candidate), {name: self._with(value, candidate) for name, value in kwargs.items()}

    def _change(self, candidate: _Candidate, factor: Tensor, change: Change) -> None:
        """Replaces the weights that are a factor of a product, which has to be all of them in their order."""
        own = candidate.weights
        same = factor.numel() == own.numel() and torch.allclose(
            factor.detach().reshape(own.shape).to(own.dtype), own, rtol=0, atol=0, equal_nan=True
        )
        if not same:
            raise NotImplementedError(
                "These attention weights are dropped out or rearranged before they are multiplied by values, so they "
                "cannot be changed: call model.eval(), or use an sdpa implementation of the model."
            )
        weights = factor.reshape(own.shape)
        found = change(weights, own > 0)
        if found is not weights:
            candidate.weights = found.detach()
            candidate.changed = found.reshape(factor.shape).to(factor.dtype)

    def _with(self, value: Any, candidate: _Candidate) -> Any:
        if isinstance(value, Tensor):
            found = next(self._found([value]), None)
            return candidate.changed if found is not None and found[1] is candidate else value
        if isinstance(value, list | tuple):
            return type(value)(self._with(each, candidate) for each in value)
        return value

    def _derived(self, candidate: _Candidate, part: Effect, result: Tensor) -> _Candidate:
        old, new = candidate.weights.shape, result.shape
        if part is Effect.SAME and len(old) == len(new) and old[:-2] == new[:-2]:
            return _Candidate(result.detach())
        if part is Effect.KEPT and len(new) > len(old) and new[-1] == old[-1] and (new[-2] == old[-2] or len(old) == 2):
            # The heads are split from the batch, or a single query gets its axis. Dropout keeps the shape.
            candidate.weights = candidate.weights.view(new) if result.numel() == candidate.weights.numel() else result
        return candidate

    def _follow(self, tensor: Tensor, candidate: _Candidate) -> None:
        key = id(tensor)
        self.followed[key] = (weakref.ref(tensor, _forgetter(self.followed, key)), candidate)

    def _candidate(self, args: Sequence[Any], kwargs: dict[str, Any]) -> _Candidate | None:
        found = next(self._found(args), None) or next(self._found(list(kwargs.values())), None)
        return None if found is None else found[1]

    def _found(self, values: Sequence[Any]) -> Iterator[tuple[Tensor, _Candidate]]:
        for value in values:
            if isinstance(value, Tensor):
                entry = self.followed.get(id(value))
                if entry is not None and entry[0]() is value:
                    yield value, entry[1]
            elif isinstance(value, list | tuple):
                yield from self._found(value)


def _forgetter(followed: dict[int, Any], key: int) -> Callable[[weakref.ref[Tensor]], None]:
    """Removes an entry, unless another tensor has taken its id since."""

    def forget(reference: weakref.ref[Tensor]) -> None:
        entry = followed.get(key)
        if entry is not None and entry[0] is reference:
            del followed[key]

    return forget
