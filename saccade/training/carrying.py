"""The state that a model carries from one piece of a long text to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from saccade.data.contiguous import CARRIED, Pieces
from saccade.tasks import Loss, Row
from saccade.training.processes import Processes


class Carrying:
    """The states of all streams of a text after the last piece, for a model that has any.

    Args:
        rows: `Pieces`, or other rows, between which nothing is carried.
        processes: each reads every n-th stream.
    """

    def __init__(self, rows: Sequence[Row], processes: Processes) -> None:
        self.pieces = rows if isinstance(rows, Pieces) else None
        self.processes = processes
        self.tensors: dict[str, Tensor] = {}

    def given(self, batch: dict[str, Tensor], places: Sequence[int]) -> dict[str, Tensor]:
        """The batch of some rows, with the state carried from earlier pieces."""
        if self.pieces is None or self.pieces.begins(places):
            return batch
        return {**batch, **{f"{CARRIED}{name}": tensor for name, tensor in self.tensors.items()}}

    def keep(self, loss: Loss, places: Sequence[int]) -> None:
        """Keeps the state for the next pieces."""
        if self.pieces is not None:
            self.tensors = dict(loss.carried) if places else {}

    def state(self) -> dict[str, Tensor]:
        """The states of all streams, in order, in every process."""
        own = {name: tensor.detach().cpu() for name, tensor in self.tensors.items()}
        if self.pieces is None or self.processes.count == 1:
            return own
        several = [found for found in self.processes.gather(own) if found]  # none of a process without a stream
        return {name: interleaved([found[name] for found in several]) for name in (several[0] if several else {})}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Takes this process's part of what `state` gave, perhaps to another number of processes."""
        mine = slice(self.processes.index, None, self.processes.count)
        found = {name: tensor[mine] for name, tensor in state.items()}
        self.tensors = {name: tensor.to(self.processes.device) for name, tensor in found.items() if len(tensor)}


def interleaved(parts: Sequence[Tensor]) -> Tensor:
    """Row b of the whole is row b // n of part b % n, for n parts."""
    count = sum(map(len, parts))
    return torch.stack([parts[row % len(parts)][row // len(parts)] for row in range(count)])
