"""Heads that a model has joined with the batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from types import FrameType

from torch import Tensor, nn

from saccade.interpretation.recording.patterns import matches
from saccade.interpretation.recording.recipes import Captured, Given, ScaledDot

ATTRIBUTES = ("num_heads", "num_attention_heads", "n_heads", "n_head", "nhead", "heads", "num_head")
"""What modules call the number of their heads."""
JOINED = frozenset((Given, ScaledDot))
"""Recipes whose heads may have been joined with the batch."""

NumHeads = int | Mapping[str, int] | None


class Heads:
    """The number of heads of attention over (batch * heads, queries, keys).

    Args:
        given: the number, or numbers by path or pattern; by default read from the modules.
    """

    def __init__(self, given: NumHeads) -> None:
        numbers = [] if given is None else given.values() if isinstance(given, Mapping) else [given]
        wrong = [number for number in numbers if not isinstance(number, int) or number < 1]
        if wrong:
            raise ValueError(f"num_heads must be 1 or more, or a dictionary of such numbers by path, got {given!r}.")
        self._given = given

    def split(
        self,
        attended: Captured,
        path: str,
        modules_of: Callable[[FrameType], Iterable[nn.Module]],
        frame: FrameType,
    ) -> Captured:
        """The same attention with an axis for the heads.

        Args:
            attended: the call.
            path: of its module.
            modules_of: gives the modules that run in a frame, the innermost first.
            frame: of the call.
        """
        recipe, tensors = attended
        if type(recipe) not in JOINED:
            return attended
        main = tensors["query"] if "query" in tensors else tensors.get("weights")
        if main is None or main.dim() != 3:
            return attended
        rows = main.shape[0]
        heads = self._number(path, rows, modules_of(frame))
        if heads == 1:
            return attended
        return Captured(recipe, {part: _split(tensor, rows, heads) for part, tensor in tensors.items()})

    def _number(self, path: str, rows: int, modules: Iterable[nn.Module]) -> int:
        if isinstance(self._given, Mapping):
            given = next((number for pattern, number in self._given.items() if matches(path, pattern)), None)
        else:
            given = self._given
        if given is not None:
            if rows % given:
                raise ValueError(f"num_heads={given}: the first axis of the weights of {path!r} has {rows} entries.")
            return given
        for module in islice(modules, 2):
            for name in ATTRIBUTES:
                number = getattr(module, name, None)
                if isinstance(number, int) and not isinstance(number, bool):
                    return number if number > 0 and rows % number == 0 else 1
        return 1


OF_MODULES = Heads(None)
"""What the modules say."""


def _split(tensor: Tensor, rows: int, heads: int) -> Tensor:
    if tensor.dim() == 3 and tensor.shape[0] == rows:
        return tensor.view(-1, heads, *tensor.shape[1:])
    return tensor.unsqueeze(0) if tensor.dim() == 3 else tensor
