"""Attention that a model computes by itself: a softmax whose result, perhaps after dropout, is multiplied by values."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from torch import Tensor

from saccade.interpretation.recording.recipes import Attended, Given


class Part(Enum):
    """What a function can be to the weights of attention."""

    SAME = auto()  # other weights, of the same meaning: masked, cast, cut
    KEPT = auto()  # dropout, or another view
    PRODUCT = auto()


PARTS = {
    Part.SAME: (
        *("to", "type", "type_as", "float", "half", "bfloat16", "double", "clone", "contiguous", "nan_to_num"),
        *("masked_fill", "where", "mul", "multiply", "div", "__mul__", "__rmul__", "__truediv__", "__getitem__"),
        *("sub", "__sub__", "add", "__add__", "masked_fill_", "mul_", "div_"),
    ),
    Part.KEPT: (
        *("dropout", "alpha_dropout", "feature_dropout", "dropout_", "transpose", "permute", "view", "reshape"),
        *("unsqueeze", "squeeze", "expand", "flatten", "unflatten", "movedim", "swapaxes", "mT", "T", "repeat"),
    ),
    Part.PRODUCT: ("matmul", "__matmul__", "__rmatmul__", "bmm", "baddbmm", "einsum"),
}
PART_OF = {name: part for part, names in PARTS.items() for name in names}


@dataclass(eq=False)
class _Candidate:
    weights: Tensor
    used: bool = False


class Softmaxes:
    """Follows the results of softmaxes until a product uses them; only then they were attention.

    The results are referred to weakly: what the model forgets is forgotten here.

    Attributes:
        paused: where it is not 0, nothing is looked at.
    """

    def __init__(self) -> None:
        self.paused = 0
        self.followed: dict[int, tuple[weakref.ref[Tensor], _Candidate]] = {}

    def begin(self, args: Sequence[Any], kwargs: dict[str, Any], result: Any) -> bool:
        """Follows the result of a softmax; one over another axis than the last is not of attention."""
        dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
        if self.paused or not isinstance(result, Tensor) or result.dim() < 2 or dim not in (-1, result.dim() - 1):
            return False
        self._follow(result, _Candidate(result.detach()))
        return True

    def step(self, part: Part, args: Sequence[Any], kwargs: dict[str, Any], result: Any) -> Attended | None:
        """A function was computed; the attention that it completes, if it does."""
        if self.paused:
            return None
        candidate = next(self._found(args), None) or next(self._found(list(kwargs.values())), None)
        if candidate is None or candidate.used:
            return None
        if part is Part.PRODUCT:
            candidate.used = True
            return Attended(Given(), {"weights": candidate.weights}) if candidate.weights.dim() > 2 else None
        if isinstance(result, Tensor) and result.is_floating_point():
            self._follow(result, self._derived(candidate, part, result))
        return None

    def _derived(self, candidate: _Candidate, part: Part, result: Tensor) -> _Candidate:
        old, new = candidate.weights.shape, result.shape
        if part is Part.SAME and len(old) == len(new) and old[:-2] == new[:-2]:
            return _Candidate(result.detach())
        if part is Part.KEPT and len(new) > len(old) and new[-1] == old[-1] and (new[-2] == old[-2] or len(old) == 2):
            # Heads that were joined with the batch come apart, or a single query gets its axis. Dropout keeps shapes.
            candidate.weights = candidate.weights.view(new) if result.numel() == candidate.weights.numel() else result
        return candidate

    def _follow(self, tensor: Tensor, candidate: _Candidate) -> None:
        key = id(tensor)
        self.followed[key] = (weakref.ref(tensor, _forgetter(self.followed, key)), candidate)

    def _found(self, values: Sequence[Any]) -> Iterator[_Candidate]:
        for value in values:
            if isinstance(value, Tensor):
                entry = self.followed.get(id(value))
                if entry is not None and entry[0]() is value:
                    yield entry[1]
            elif isinstance(value, list | tuple):
                yield from self._found(value)


def _forgetter(followed: dict[int, Any], key: int) -> Callable[[weakref.ref[Tensor]], None]:
    """Forgets an entry, unless another tensor has taken its place since."""

    def forget(reference: weakref.ref[Tensor]) -> None:
        entry = followed.get(key)
        if entry is not None and entry[0] is reference:
            del followed[key]

    return forget
