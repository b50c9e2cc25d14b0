"""Batches of indices, epoch after epoch, that know their position."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from numpy.typing import ArrayLike

from saccade.data.batches import TokenBatches
from saccade.data.contiguous import OrderedBatches, Pieces
from saccade.tasks import Row, Task
from saccade.training.processes import Processes
from saccade.training.settings import TrainerSettings


class Stream:
    """This process's share of the global batches, epoch after epoch."""

    def __init__(self, batches: TokenBatches) -> None:
        self._batches = batches
        self._iterator = iter(batches)

    @classmethod
    def of(
        cls,
        encoded: Sequence[Row],
        sizes: ArrayLike | None = None,
        *,
        task: Task,
        trainer: TrainerSettings,
        processes: Processes,
        shuffle: bool,
    ) -> Stream:
        """The stream of some examples with a trainer's settings; their sizes may already be known.

        Pieces of one long text come in order.
        """
        if not len(encoded):
            raise ValueError("There are no examples to train or validate on.")
        if isinstance(encoded, Pieces):
            return cls(OrderedBatches(encoded, shard=processes.index, shards=processes.count))
        return cls(
            TokenBatches(
                [task.size(encoded[i]) for i in range(len(encoded))] if sizes is None else sizes,
                budget=trainer.batch_tokens,
                seed=trainer.seed,
                shuffle=shuffle,
                shard=processes.index,
                shards=processes.count,
            )
        )

    def __len__(self) -> int:
        """The number of batches in an epoch."""
        return len(self._batches)

    @property
    def at_epoch_end(self) -> bool:
        return self._batches.position >= len(self._batches)

    @property
    def epochs_done(self) -> int:
        return self._batches.epoch + self.at_epoch_end

    def take(self, count: int) -> tuple[int, list[list[int]]]:
        """The next batches, `count` or as many as the epoch still has, and the epoch that they are of."""
        taken = list(islice(self._iterator, count))
        if not taken:
            self._iterator = iter(self._batches)
            taken = list(islice(self._iterator, count))
        return self._batches.epoch, taken

    def peek(self, count: int) -> list[list[int]]:
        """What the next `take` will return, within this epoch."""
        return self._batches.peek(count)

    def state_dict(self) -> dict[str, Any]:
        return self._batches.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._batches.load_state_dict(state)
        self._iterator = iter(self._batches)


def rows(encoded: Sequence[Row], indices: Iterable[int]) -> list[Row]:
    """Some examples; an Arrow dataset reads them together, which is much faster than one by one."""
    together = getattr(encoded, "__getitems__", None)
    return together(list(indices)) if together is not None else [encoded[i] for i in indices]
