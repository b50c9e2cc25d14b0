"""Snapshots of functions, independent of later changes to the variables they use."""

from __future__ import annotations

import types
from functools import partial
from typing import Any

import torch
from torch import Tensor

from saccade.interpretation.recording.recipes import Tensors
from saccade.kernels.private_torch import version

FIXED = (int, float, complex, str, bytes, type(None), torch.dtype, torch.device)
LIBRARIES = ("torch", "math", "builtins", "operator", "functools")
"""Packages whose modules and classes hold nothing that changes."""
BUILT_IN = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)


class CannotFreezeError(Exception):
    """A function uses a value that may change unnoticed."""


class Freezer:
    """Copies functions together with the variables of their closures and modules.

    Attributes:
        tensors: those that the copies refer to, by a name for each; others were copied, since they had been written to.
    """

    def __init__(self) -> None:
        self.tensors: Tensors = {}
        self._done: dict[int, Any] = {}
        self._alive: list[Any] = []

    def freeze(self, value: Any) -> Any:
        """The value as it is now.

        Raises:
            CannotFreezeError: if it may contain anything.
        """
        if isinstance(value, FIXED + BUILT_IN):
            return value
        if id(value) not in self._done:
            self._alive.append(value)  # so that its id stays its own
            self._done[id(value)] = value  # a function may refer to itself
            self._done[id(value)] = self._copy(value)
        return self._done[id(value)]

    def _copy(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return self._tensor(value.detach())
        if type(value) in (tuple, list):
            return type(value)(self.freeze(each) for each in value)
        if type(value) is dict:
            return {key: self.freeze(each) for key, each in value.items()}
        if isinstance(value, partial):
            keywords = {key: self.freeze(each) for key, each in value.keywords.items()}
            return partial(self.freeze(value.func), *map(self.freeze, value.args), **keywords)
        if isinstance(value, types.FunctionType):
            return self._function(value)
        if isinstance(value, types.ModuleType | type):
            place = value.__name__ if isinstance(value, types.ModuleType) else value.__module__
            if place.partition(".")[0] in LIBRARIES:
                return value
        raise CannotFreezeError(type(value).__name__)

    def _tensor(self, tensor: Tensor) -> Tensor:
        if version(tensor):
            return tensor.clone()
        self.tensors[f"variable {len(self.tensors)}"] = tensor
        return tensor

    def _cell(self, cell: types.CellType) -> types.CellType:
        try:
            return types.CellType(self.freeze(cell.cell_contents))
        except ValueError:  # a variable that has not been assigned
            return types.CellType()

    def _function(self, function: types.FunctionType) -> Any:
        names = _names(function.__code__) & function.__globals__.keys()
        library = f"{function.__module__}.".startswith("torch.")
        used = {} if library else {name: self.freeze(function.__globals__[name]) for name in names}
        cells = tuple(self._cell(cell) for cell in function.__closure__ or ())
        if library and not cells:
            return function
        copy = types.FunctionType(
            function.__code__,
            {**function.__globals__, **used},
            function.__name__,
            self.freeze(function.__defaults__),
            cells,
        )
        copy.__kwdefaults__ = self.freeze(function.__kwdefaults__)
        return copy


def _names(code: types.CodeType) -> set[str]:
    """The names of variables and attributes that code uses, and the functions defined in it."""
    inside = (each for each in code.co_consts if isinstance(each, types.CodeType))
    return set(code.co_names).union(*map(_names, inside))
