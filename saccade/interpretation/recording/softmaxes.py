"""Hand-written attention: a softmax whose result, perhaps after dropout, is multiplied by values."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from saccade.interpretation.recording.effects import ALSO_CLASSES, DROPOUTS, Effect
from saccade.interpretation.recording.patterns import is_inside
from saccade.interpretation.recording.products import arranged, in_usual_order, mixes_heads, permuted, values_of
from saccade.interpretation.recording.recipes import Captured, Change, Given

REARRANGED = (
    "Dropout or another operation is applied to these attention weights before they are multiplied by values, "
    "so they cannot be changed: call model.eval(), or use an sdpa implementation of the model."
)
"""Why an intervention is rejected."""


class _Used(NamedTuple):
    """Weights that a product has used, and whether they are those of some keys."""

    weights: Tensor
    part: bool


@dataclass(eq=False)
class _Candidate:
    """Weights that may be attention.

    Attributes:
        used: the weights of this softmax that products have used, by the path of the module; shared with those.
        part: whether they are those of some keys.
        mixed: whether the factor of the product is what counts: heads were mixed after the softmax, the weights placed
            among zeros, or the softmax is not over the last axis.
        summed: the axis over which values that were multiplied by the weights are to be summed.
        changed: for each path, changed weights, in their own shape and in that of the factor; None if a change has left
            them as they were.
    """

    weights: Tensor
    used: dict[str | None, _Used]
    mixed: bool = False
    part: bool = False
    summed: int | None = None
    changed: dict[str | None, tuple[Tensor, Tensor] | None] = field(default_factory=dict)

    def own(self, path: str | None) -> Tensor:
        """The weights, or what they were changed into."""
        changed = self.changed.get(path)
        return self.weights if changed is None else changed[0]


class Completed(NamedTuple):
    """Attention that a product has completed, and the values it read, with keys as their second last axis."""

    attended: Captured
    values: Tensor | None


SEVERAL = (
    "Several products use these attention weights in different forms, so they cannot be changed: leave this module out "
    "of change=."
)


class Lost(NamedTuple):
    """A softmax whose result could not be followed.

    Args:
        path: of the module.
        reason: why.
        used: what products have used after all: then it is not missing.
    """

    path: str
    reason: str
    used: Mapping[str | None, _Used]


class Softmaxes:
    """Follows the results of softmaxes until a product uses them: only then are they attention.

    It holds weak references, so the model's tensors are freed as usual.

    Attributes:
        paused: if not 0, nothing is followed.
        lost: those that were lost track of.
    """

    def __init__(self) -> None:
        self.paused = 0
        self.followed: dict[int, tuple[weakref.ref[Tensor], _Candidate]] = {}
        self.lost: list[Lost] = []

    def begin(self, dim: int, result: Tensor) -> bool:
        """Follows the result of a softmax over an axis."""
        if self.paused or result.dim() < 2:
            return False
        weights, axis = result.detach(), dim % result.dim()
        if axis == result.dim() - 2 and result.dim() > 2 and result.shape[-1] == 1:
            weights, axis = weights.transpose(-2, -1), result.dim() - 1
        # Of other axes than the last, the product shows which are queries and keys.
        self._follow(result, _Candidate(weights, {}, mixed=axis != result.dim() - 1))
        return True

    def keep_from_dropout(self, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Copies weights that dropout is about to overwrite; `name` is the function's."""
        found = self._factor(args, kwargs) if name in DROPOUTS else None
        inside = name == "dropout_" or bool(kwargs.get("inplace", args[3] if len(args) > 3 else False))
        if found is not None and inside:
            found[1].weights = found[1].weights.clone()

    def step(
        self,
        effect: Effect,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        result: Any,
        name: str,
        path_of: Callable[[], str | None],
    ) -> Completed | None:
        """Takes note of a function that ran, and returns the attention that it completes, if any.

        Args:
            effect: of the function.
            args, kwargs, result: of the call.
            name: of the function.
            path_of: gives the path of the module that called it.
        """
        found = None if self.paused else self._factor(args, kwargs)
        if found is None:
            return None
        factor, candidate = found
        if effect is Effect.LOST:
            classes = name in ALSO_CLASSES and (candidate.mixed or candidate.weights.dim() < 4)
            path = None if classes or candidate.weights.dim() < 3 else path_of()
            if path is not None:
                reason = f"the result of a softmax was given to {name}, which is not followed"
                self.lost.append(Lost(path, reason, candidate.used))
            return None
        if effect is Effect.SUM:
            return self._sum(candidate, args, kwargs, factor, path_of)
        if not isinstance(result, Tensor) or not result.is_floating_point():
            return None
        others = [each for each in _tensors((*args, *kwargs.values())) if each is not factor]
        if effect in (Effect.PRODUCT, Effect.MIXED):
            if mixes_heads(candidate.weights, factor, others, result):
                self._follow(result, _Candidate(result.detach(), candidate.used, mixed=True))
                return None
            if effect is Effect.PRODUCT:
                return self._product(candidate, factor, others, name, args, path_of())
            return None
        if effect is Effect.PLACED:
            if candidate.summed is None and result.shape[:-1] == candidate.weights.shape[:-1]:
                self._follow(result, _Candidate(result.detach(), candidate.used, mixed=True))
            return None
        keys = candidate.weights.shape[-1]
        if effect is Effect.TIMES and factor.shape[-1] == 1 < result.shape[-1] and factor.shape[-2:-1] == (keys,):
            self._follow(result, _Candidate(candidate.weights, candidate.used, summed=result.dim() - 2))
        elif candidate.summed is None:
            reordered = permuted(name, args, kwargs, factor, candidate.weights)
            if reordered is None:
                self._follow(result, self._derived(candidate, effect, result))
            else:
                self._follow(result, replace(candidate, weights=reordered, changed={}))
        return None

    def _product(
        self,
        candidate: _Candidate,
        factor: Tensor,
        others: list[Tensor],
        name: str,
        args: Sequence[Any],
        path: str | None,
    ) -> Completed | None:
        if candidate.summed is not None:
            return None
        if path in candidate.used:
            before = candidate.used[path]
            if before.part and before.weights is not candidate.weights and path is not None:
                self.lost.append(Lost(path, "it multiplies the weights of some keys at a time by values", {}))
            return None
        if any(path is not None and inner is not None and is_inside(inner, path) for inner in candidate.used):
            return None  # the module around analyses the weights
        own = candidate.own(path)
        weights = arranged(name, args, factor, own, known=not candidate.mixed)
        values = values_of(weights, others)
        if weights.dim() == 2:  # without a batch, or one query for each row
            pooled = any(each.dim() > 2 for each in others)
            if not pooled and not any(weights.shape[1] in each.shape for each in others):
                return None
            weights = weights.unsqueeze(1 if pooled else 0)
        candidate.used[path] = _Used(candidate.weights, candidate.part)
        return Completed(Captured(Given(), {"weights": weights}), values)

    def _sum(
        self,
        candidate: _Candidate,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        factor: Tensor,
        path_of: Callable[[], str | None],
    ) -> Completed | None:
        dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
        axes = [dim] if isinstance(dim, int) else list(dim or [])
        if candidate.summed is None or candidate.summed not in [axis % factor.dim() for axis in axes]:
            return None
        path = path_of()
        if path in candidate.used:
            return None
        candidate.used[path] = _Used(candidate.weights, candidate.part)
        weights = candidate.weights
        return Completed(Captured(Given(), {"weights": weights.unsqueeze(1) if weights.dim() == 2 else weights}), None)

    def changed(
        self,
        name: str,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        find_change: Callable[[], Change | None],
        path: str | None,
    ) -> tuple[Any, dict[str, Any]]:
        """The arguments of a product, with changed weights if there is a change for them.

        Args:
            name: of the function.
            args, kwargs: of the call.
            find_change: gives the change.
            path: of the module that called it.
        """
        found = None if self.paused else self._factor(args, kwargs)
        if found is None or found[1].weights.dim() < 3:
            return args, kwargs
        factor, candidate = found
        if path not in candidate.changed:
            change = find_change()
            if change is None:
                return args, kwargs
            if path in candidate.used:
                raise NotImplementedError(SEVERAL)
            if any(path is not None and inner is not None and is_inside(inner, path) for inner in candidate.used):
                return args, kwargs
            if not in_usual_order(name, args, factor, known=not candidate.mixed):
                raise NotImplementedError(REARRANGED)
            others = [each for each in _tensors((*args, *kwargs.values())) if each is not factor]
            candidate.changed[path] = self._change(candidate, factor, change, values_of(candidate.weights, others))
        changed = candidate.changed[path]
        if changed is None:
            return args, kwargs
        new = {name: self._with(value, factor, changed[1]) for name, value in kwargs.items()}
        return self._with(args, factor, changed[1]), new

    def _change(
        self, candidate: _Candidate, factor: Tensor, change: Change, values: Tensor | None
    ) -> tuple[Tensor, Tensor] | None:
        """Changes the weights that are a factor of a product, which has to be all of them in their order."""
        own = candidate.weights
        same = factor.numel() == own.numel() and torch.allclose(
            factor.detach().reshape(own.shape).to(own.dtype), own, rtol=0, atol=0, equal_nan=True
        )
        if not same:
            raise NotImplementedError(REARRANGED)
        weights = factor.reshape(own.shape)
        found = change(weights, own > 0, values)
        return None if found is weights else (found.detach(), found.reshape(factor.shape).to(factor.dtype))

    def _with(self, value: Any, factor: Tensor, changed: Tensor) -> Any:
        if value is factor:
            return changed
        if isinstance(value, list | tuple):
            return type(value)(self._with(each, factor, changed) for each in value)
        return value

    def _derived(self, candidate: _Candidate, effect: Effect, result: Tensor) -> _Candidate:
        old, new = candidate.weights.shape, result.shape
        some_queries = len(old) == len(new) and new[-1] == old[-1] and new[-2] < old[-2]
        if effect is not Effect.KEPT and len(old) == len(new) and old[:-2] == new[:-2] and not some_queries:
            part = candidate.part or new[-1] < old[-1]
            return _Candidate(result.detach(), candidate.used, mixed=candidate.mixed, part=part)
        if (
            effect is Effect.KEPT
            and len(new) > len(old)
            and new[-1] == old[-1]
            and (new[-2] == old[-2] or len(old) == 2)
        ):
            # The heads are split from the batch, or a single query gets its axis. Dropout keeps the shape.
            candidate.weights = (
                candidate.weights.reshape(new) if result.numel() == candidate.weights.numel() else result
            )
        return candidate

    def _follow(self, tensor: Tensor, candidate: _Candidate) -> None:
        key = id(tensor)
        self.followed[key] = (weakref.ref(tensor, _forgetter(self.followed, key)), candidate)

    def _factor(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Tensor, _Candidate] | None:
        return next(self._found(args), None) or next(self._found(list(kwargs.values())), None)

    def _found(self, values: Sequence[Any]) -> Iterator[tuple[Tensor, _Candidate]]:
        for value in values:
            if isinstance(value, Tensor):
                entry = self.followed.get(id(value))
                if entry is not None and entry[0]() is value:
                    yield value, entry[1]
            elif isinstance(value, list | tuple):
                yield from self._found(value)


def _tensors(values: Sequence[Any]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _forgetter(followed: dict[int, Any], key: int) -> Callable[[weakref.ref[Tensor]], None]:
    """Removes an entry, unless another tensor has taken its id since."""

    def forget(reference: weakref.ref[Tensor]) -> None:
        entry = followed.get(key)
        if entry is not None and entry[0] is reference:
            del followed[key]

    return forget
