"""The graphs of a model: modules over named tensors, with the axes that vary."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from saccade.fields.looking import Looking
from saccade.layers.limits import fewest, most_keys, most_positions

UNBOUNDED = 2**31
"""An axis that can be at least this long has no limit."""

Axes = dict[str, dict[int, str]]
"""For each tensor, the axes whose sizes vary, with their names."""

Make = Callable[[int, int], dict[str, Tensor]]
"""Makes the inputs of a model by name, for a number of examples and a maximum number of positions."""


@dataclass(frozen=True)
class TracedGraph:
    """One graph of an export."""

    name: str
    module: nn.Module
    """Takes the inputs in order, and returns a tuple of the outputs."""

    inputs: dict[str, Tensor]
    """Examples, whose sizes differ from each other wherever they vary."""

    outputs: list[str]
    axes: Axes
    """Of the inputs."""

    looking: Looking | None = None
    """What the output `looks` shows."""

    program: torch.export.ExportedProgram | None = None
    """The graph as `torch.export` sees it, if it was needed already."""


def axes_between(left: Mapping[str, Tensor], right: Mapping[str, Tensor], names: Mapping[tuple[int, int], str]) -> Axes:
    """The axes in which the same tensors differ in two runs, named by their two sizes."""
    found: Axes = {}
    for name, tensor in left.items():
        pairs = enumerate(zip(tensor.shape, right[name].shape, strict=True))
        own = {axis: names.get(pair, f"{name}_{axis}") for axis, pair in pairs if pair[0] != pair[1]}
        if own:
            found[name] = own
    return found


def axis_names(left: Mapping[str, Tensor], right: Mapping[str, Tensor]) -> dict[tuple[int, int], str]:
    """Names of the axes of inputs by their sizes in two runs: the batch, and the positions of each input."""
    first = next(iter(left))
    found = {(left[first].shape[0], right[first].shape[0]): "batch"}
    for name in [name for name in left if name.endswith("_mask")]:
        pairs = list(zip(left[name].shape, right[name].shape, strict=True))[1:]
        for axis, pair in zip([["length"], ["sentences", "words"]][len(pairs) - 1], pairs, strict=True):
            if pair[0] == pair[1]:  # it does not vary
                continue
            number = sum(known.startswith(axis) for known in found.values())
            found.setdefault(pair, axis if not number else f"{axis}_{number + 1}")
    return found


def exported_program(graph: TracedGraph) -> torch.export.ExportedProgram:
    """The graph as `torch.export` sees it, with dynamic axes."""
    if graph.program is not None:
        return graph.program
    varying = {name: dict.fromkeys(axes, torch.export.Dim.DYNAMIC) for name, axes in graph.axes.items()}
    shapes: list[Any] = [varying.get(name) for name in graph.inputs]
    named = [p for p in inspect.signature(graph.module.forward).parameters.values() if p.kind is not p.VAR_POSITIONAL]
    rest = tuple(shapes[len(named) :])
    with torch.no_grad():
        found = torch.export.export(
            graph.module.eval(),
            tuple(graph.inputs.values()),
            dynamic_shapes=(*shapes[: len(named)], *([rest] if len(named) < len(shapes) else [])),
        )
    limit = fewest([most_positions(graph.module), most_keys(graph.module)])
    for bounds in found.range_constraints.values():
        if bounds.upper < (UNBOUNDED if limit is None else limit):
            raise ValueError(f"The {graph.name} cannot be exported: its operations depend on the length of the input.")
    return found
