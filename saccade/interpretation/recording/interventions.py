"""Interventions: what a model computes when it attends differently.

The functions here make interventions for `saccade.record(model, change={path: intervention})`. Any function
`(weights, mask, steps) -> weights` is one, and may take the positions of the keys as `keys`; weights that sum to less
than 1 read less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.interpretation.recording.changes import Intervention
from saccade.interpretation.recording.recorder import record
from saccade.interpretation.recording.trace import Trace


def ablate_head(*heads: int) -> Intervention:
    """Makes these heads, counted from 0, read nothing."""
    if not heads:
        raise ValueError("ablate_head takes the numbers of one or more heads: ablate_head(3).")

    def ablate(weights: Tensor, mask: Tensor, steps: range) -> Tensor:
        _check_within("head", heads, weights.shape[1], "heads")
        changed = weights.clone()
        changed[:, list(heads)] = 0.0
        return changed

    return ablate


def uniform() -> Intervention:
    """The same weight for every key that may be attended; each query keeps its total weight."""

    def flatten(weights: Tensor, mask: Tensor, steps: range) -> Tensor:
        return weights.sum(-1, keepdim=True) * mask / mask.sum(-1, keepdim=True).clamp(min=1)

    return flatten


def knock_out(positions: Iterable[int], *, rescale: bool = True) -> Intervention:
    """Blocks attention to the keys at these positions in the text, counted from 0.

    Args:
        positions: the keys; those that a call does not have are ignored.
        rescale: scales the remaining weights up to the previous total; otherwise the query reads less.
    """
    if not isinstance(positions, Iterable):
        raise TypeError(f"knock_out takes a list of positions: knock_out([3]); got {positions!r}.")
    positions = [index(position) for position in positions]
    if any(position < 0 for position in positions):
        raise ValueError(f"positions count from 0, got {list(positions)}.")

    def knock(weights: Tensor, mask: Tensor, steps: range, keys: range | None = None) -> Tensor:
        keys = keys or range(weights.shape[-1])
        here = [keys.index(position) for position in positions if position in keys]
        changed = weights.clone()
        changed[..., here] = 0.0
        return rescaled(changed, weights) if rescale else changed

    return knock


def use_weights(given: Tensor) -> Intervention:
    """Replaces the model's weights, for example with those of another trace.

    Args:
        given: (batch, heads, queries, keys); a decoder that takes one step at a time uses the row of each step, and
            those keys that it has. A batch or number of heads of 1 is expanded.
    """
    if given.dim() != 4:
        raise ValueError(f"use_weights takes weights (batch, heads, queries, keys), got {tuple(given.shape)}.")

    def replace(weights: Tensor, mask: Tensor, steps: range, keys: range | None = None) -> Tensor:
        rows = given[:, :, steps.start : steps.stop]
        if rows.shape[3] != weights.shape[3]:
            rows = _of_keys(rows, keys or range(weights.shape[3]), mask)
        fits = rows.shape[2:] == weights.shape[2:] and all(
            have in (1, want) for have, want in zip(rows.shape[:2], weights.shape[:2], strict=True)
        )
        if not fits:
            raise ValueError(
                f"use_weights: weights {tuple(given.shape)} do not fit queries {steps.start} to {steps.stop - 1} of a "
                f"call with weights {tuple(weights.shape)}."
            )
        return rows.to(weights).expand_as(weights)

    return replace


def _of_keys(rows: Tensor, keys: range, mask: Tensor) -> Tensor:
    """The weights of some keys, if the others have none; keys after the last may be there if none may be attended."""
    own, later = rows[..., keys.start : keys.stop], keys.stop - rows.shape[3]
    if later > 0 and not bool(mask[..., -later:].any()):
        own = F.pad(own, (0, later))
    outside = rows[..., : keys.start], rows[..., keys.stop :]
    return rows if any(bool(part.any()) for part in outside) else own


def rescaled(changed: Tensor, weights: Tensor) -> Tensor:
    """Changed weights, scaled so that each query has the total of `weights`; zeros stay zeros."""
    total = changed.sum(dim=-1, keepdim=True)
    return changed * (weights.sum(dim=-1, keepdim=True) / total.where(total > 0, 1))


def patch(trace: Trace, keep: str = "*") -> dict[str, Intervention]:
    """Replaces the model's weights with those of another trace, for every module that matches `keep`."""
    paths = list(dict.fromkeys(call.path for call in trace.find(keep)))
    if not paths:
        raise ValueError(f"keep={keep!r} matches none of {', '.join(trace.paths)}.")
    return {path: use_weights(trace.joined(path)) for path in paths}


@dataclass(frozen=True)
class Comparison:
    """A model's output without and with a change of its attention.

    Attributes:
        before, after: what it returned.
        trace: the recording of the changed run.
    """

    before: Any
    after: Any
    trace: Trace

    @property
    def differences(self) -> dict[str, float]:
        """How far each tensor moved: |after - before| / |before|; of whole numbers, the part that differs."""
        after = dict(_tensors(self.after))
        found = {}
        for name, tensor in _tensors(self.before):
            other = after.get(name)
            if other is not None and not tensor.is_floating_point() and other.shape[:-1] == tensor.shape[:-1]:
                found[name] = _differing(tensor, other)
                continue
            if other is None or other.shape != tensor.shape:
                raise ValueError(
                    f"{name} of the output has another shape after the change: compare one step at a time."
                )
            moved = torch.linalg.vector_norm(other.double() - tensor.double())
            found[name] = float(moved / torch.linalg.vector_norm(tensor.double()).clamp(min=1e-300))
        return found

    def __str__(self) -> str:
        return "\n".join(f"{name}: moved by {part:.1%}" for name, part in self.differences.items())

    def __repr__(self) -> str:
        return f"Comparison of {', '.join(dict(_tensors(self.before)))}"


@torch.no_grad()
def compare(model: nn.Module, run: Callable[[], Any], change: Mapping[str, Intervention]) -> Comparison:
    """Runs a model without and with a change of its attention, and compares the outputs.

    Args:
        model: the model, in evaluation mode.
        run: runs it and returns its output: a tensor, or tuples and dictionaries of them.
        change: as for `record`.
    """
    if not callable(run):
        raise TypeError(
            f"compare takes a function that runs the model, such as lambda: model(x), got {type(run).__name__}."
        )
    before = run()
    with record(model, change=change) as trace:
        after = run()
    return Comparison(before, after, trace)


def _tensors(output: Any, name: str = "output") -> Iterator[tuple[str, Tensor]]:
    if isinstance(output, Tensor):
        yield name, output
    elif isinstance(output, Mapping):
        for key, value in output.items():
            yield from _tensors(value, str(key) if name == "output" else f"{name}.{key}")
    elif isinstance(output, list | tuple):
        for number, value in enumerate(output):
            yield from _tensors(value, f"{name}[{number}]")


def _differing(before: Tensor, after: Tensor) -> float:
    """The part of whole numbers that differ; if one is longer, what it has beyond the other does."""
    if before.shape == after.shape:
        return float((before != after).double().mean()) if before.numel() else 0.0
    shared, longest = sorted((before.shape[-1], after.shape[-1]))
    same = int((before[..., :shared] == after[..., :shared]).sum())
    return 1 - same / max(before[..., :1].numel() * longest, after[..., :1].numel() * longest)


def _check_within(name: str, given: Sequence[int], count: int, several: str) -> None:
    wrong = [number for number in given if not 0 <= number < count]
    if wrong:
        raise ValueError(f"{name} {wrong[0]} does not exist: there are {count} {several}, 0 to {count - 1}.")
