"""Functions that change the weights of a model while it is recorded."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor

from saccade.interpretation.recording.patterns import matches
from saccade.interpretation.recording.positions import Positions
from saccade.interpretation.recording.recipes import four
from saccade.kernels.private_torch import in_backward, version

Intervention = Callable[..., Tensor]
"""Weights (batch, heads, queries, keys), bool in the same shape which keys may be attended, and the numbers of the
queries -> the weights to continue with. A function with an argument `keys` also gets the positions of the keys."""


class Changes:
    """The interventions of a recording, by pattern.

    The queries of a module are numbered by their positions where these are known; otherwise from 0 from the start of
    the recording, over all its calls: so a decoder that takes one step at a time counts its steps. When a backward pass
    recomputes calls, counting starts from 0.
    """

    def __init__(self, functions: Mapping[str, Intervention]) -> None:
        if not isinstance(functions, Mapping) or not all(map(callable, functions.values())):
            raise TypeError(
                "change must be a dictionary of functions by path or pattern, such as "
                f'{{"decoder.*": uniform()}}, got {functions!r}.'
            )
        for pattern, function in functions.items():
            _check_arguments(pattern, function)
        self._functions = functions
        self._take_keys = {pattern for pattern, function in functions.items() if _takes_keys(function)}
        self._steps: dict[str, int] = {}
        self._used: set[str] = set()
        self._seen: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._functions)

    def of(self, path: str) -> Callable[[Tensor, Tensor, Positions], Tensor] | None:
        """The change of the module at this path; None if no pattern matches it."""
        self._seen.add(path)
        patterns = [pattern for pattern in self._functions if matches(path, pattern)]
        self._used.update(patterns)
        return partial(self._apply, path, patterns) if patterns else None

    def check_used(self) -> None:
        """Raises if a pattern has matched no attention: a misspelt one would otherwise silently change nothing."""
        unused = [pattern for pattern in self._functions if pattern not in self._used]
        if unused:
            seen = f"the modules that attended are {', '.join(sorted(self._seen))}" if self._seen else "none ran"
            raise ValueError(f"change: {', '.join(map(repr, unused))} matched no attention; {seen}.")

    def _apply(self, path: str, patterns: list[str], weights: Tensor, mask: Tensor, positions: Positions) -> Tensor:
        shape = (*four(weights.shape[:-2]), *weights.shape[-2:])
        counted = 0 if in_backward() else self._steps.get(path, 0)
        start = counted if positions.query is None else positions.query
        steps, keys = range(start, start + shape[2]), range(positions.key, positions.key + shape[3])
        if not in_backward():
            self._steps[path] = steps.stop
        allowed = mask.reshape(shape)
        own = changed = weights.reshape(shape).clone()  # a function may write into it
        before = version(own)
        for pattern in patterns:
            options = {"keys": keys} if pattern in self._take_keys else {}
            found = self._functions[pattern](changed, allowed, steps, **options)
            if not isinstance(found, Tensor) or found.shape != shape:
                got = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
                raise ValueError(
                    f"change[{pattern!r}] must return weights of the shape {shape} of {path!r}, got {got}."
                )
            if not bool((torch.isfinite(found.detach()) | ~torch.isfinite(weights.detach().reshape(shape))).all()):
                raise ValueError(f"change[{pattern!r}] returned weights of {path!r} that are not finite.")
            changed = found
        if changed is own and before == version(own) != -1:  # inference tensors do not tell
            return weights
        return changed.to(weights).reshape(weights.shape)


NO_CHANGES = Changes({})


def _check_arguments(pattern: str, function: Intervention) -> None:
    try:
        inspect.signature(function).bind(None, None, None, **({"keys": None} if _takes_keys(function) else {}))
    except TypeError:
        name = getattr(function, "__name__", type(function).__name__)
        raise TypeError(
            f"change[{pattern!r}] must be a function of (weights, mask, steps), but {name} takes other arguments. "
            "Interventions are made by a call, such as uniform() or ablate_head(3)."
        ) from None
    except ValueError:  # a built-in function without a signature
        return


def _takes_keys(function: Intervention) -> bool:
    try:
        names = list(inspect.signature(function).parameters)
        return "keys" in names[3:]  # the first three are the weights, the mask and the steps, whatever their names
    except ValueError:  # a built-in function without a signature
        return False
