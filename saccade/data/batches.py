"""Batches of similar lengths under a token budget."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


class TokenBatches:
    """Batches of indices, epoch after epoch, that depend only on the seed and the epoch and can be resumed anywhere.

    Examples of similar size share a batch, which keeps padding low; the batches come in random order. A batch costs its
    number of rows times the size of its largest row, padding included, and stays within the budget unless a single row
    exceeds it. Iterating yields the rest of the current epoch; iterating again yields the next epoch.

    With several shards, each gets its rows of every batch, so that together they see the same batches at the same steps
    as a single process would. A batch with fewer rows than shards leaves some shards with an empty list, which they
    must step through as well.

    Args:
        sizes: the size of each example, or several sizes for each, such as source and target, which are padded
            separately: a batch then costs the sum of the largest, and examples are grouped by the last one first.
        budget: what a batch may cost, over all shards together.
        seed: for the order.
        shuffle: whether the order is random; otherwise it is from small to large, the same in every epoch.
        max_length: examples with a larger size are left out; `dropped` counts them.
        pool: how many examples are sorted together; a smaller pool gives more random batches and more padding.
        shard, shards: the index of this shard, and how many there are.
    """

    def __init__(
        self,
        sizes: ArrayLike,
        *,
        budget: int,
        seed: int = 0,
        shuffle: bool = True,
        max_length: int | None = None,
        pool: int = 1 << 17,
        shard: int = 0,
        shards: int = 1,
    ) -> None:
        if budget < 1:
            raise ValueError(f"budget must be at least 1 token, got {budget}.")
        if pool < 1:
            raise ValueError(f"pool must be at least 1 example, got {pool}.")
        if not 0 <= shard < shards:
            raise ValueError(f"shard must be between 0 and shards - 1, got shard={shard} of shards={shards}.")
        table = np.asarray(sizes, dtype=np.int64)
        if table.ndim not in (1, 2):
            raise ValueError(f"sizes must have shape (examples,) or (examples, sides), got {table.shape}.")
        self._sizes = table.reshape(len(table), -1) if table.size else table.reshape(0, 1)
        longest = self._sizes.max(axis=1)
        self._kept = np.flatnonzero(longest <= (longest.max(initial=0) if max_length is None else max_length))
        self.dropped = len(self._sizes) - len(self._kept)
        self.budget, self.seed, self.shuffle, self.pool = budget, seed, shuffle, pool
        self.shard, self.shards = shard, shards
        self.epoch = 0
        self.position = 0
        self._planned: tuple[int, list[NDArray[np.int64]]] | None = None

    def __len__(self) -> int:
        """The number of batches in this epoch."""
        return len(self._plan())

    def __iter__(self) -> Iterator[list[int]]:
        if self.position and self.position >= len(self):
            self.epoch, self.position = self.epoch + 1, 0
        while self.position < len(self):
            batch = self._plan()[self.position]
            self.position += 1
            yield batch[self.shard :: self.shards].tolist()

    def peek(self, count: int) -> list[list[int]]:
        """The next batches of this epoch, without changing the position."""
        coming = self._plan()[self.position : self.position + count]
        return [batch[self.shard :: self.shards].tolist() for batch in coming]

    def state_dict(self) -> dict[str, Any]:
        """The position after the last batch, which may be the end of an epoch."""
        return {"epoch": self.epoch, "position": self.position, "plan": f"{self._fingerprint()} {self._settings()}"}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues from a saved position; the number of shards may have changed since."""
        mark, *settings = str(state["plan"]).split(" ", 1)
        if mark != self._fingerprint():
            raise ValueError(
                f"The saved position does not match these batches: {self._changed(*settings)}. Restore it, or "
                "start over in another folder."
            )
        self.epoch, self.position = state["epoch"], state["position"]

    def padding(self) -> float:
        """The share of this epoch's cost that is padding."""
        used = int(self._sizes[self._kept].sum())
        cost = sum(len(batch) * int(self._sizes[batch].max(axis=0).sum()) for batch in self._plan())
        return 1 - used / cost if cost else 0.0

    def _plan(self) -> list[NDArray[np.int64]]:
        if self._planned is None or self._planned[0] != self.epoch:
            self._planned = self.epoch, self._make_plan()
        return self._planned[1]

    def _make_plan(self) -> list[NDArray[np.int64]]:
        random = np.random.default_rng([self.seed, self.epoch])
        order = random.permutation(self._kept) if self.shuffle else self._kept
        pool = self.pool if self.shuffle else max(len(order), 1)
        batches: list[NDArray[np.int64]] = []
        for start in range(0, len(order), pool):
            examples = order[start : start + pool]
            examples = examples[by_size(self._sizes[examples])]
            batches += np.split(examples, cuts(self._sizes[examples], self.budget))
        if self.shuffle:
            batches = [batches[i] for i in random.permutation(len(batches))]
        return batches

    def _settings(self) -> str:
        return f"number_of_examples={len(self._sizes)} token_budget={self.budget} seed={self.seed}"

    def _changed(self, before: str = "") -> str:
        """What differs from the settings of a saved position; older files do not contain them."""
        if not before:
            return "the data, the token budget or the seed has changed"
        pairs = zip(before.split(), self._settings().split(), strict=False)
        changed = [(old, new.partition("=")[2]) for old, new in pairs if old != new]
        found = [f"the {old.replace('_', ' ').replace('=', ' was ')[:60]} and is now {new}" for old, new in changed]
        return "; ".join(found) or "the data has changed (the same number of examples, but with different lengths)"

    def _fingerprint(self) -> str:
        settings = (self._sizes.shape, len(self._kept), self.budget, self.seed, self.shuffle, self.pool)
        return hashlib.blake2b(repr(settings).encode() + self._sizes.tobytes(), digest_size=16).hexdigest()


def by_size(sizes: NDArray[np.int64]) -> NDArray[np.intp]:
    """The order in which neighbours have similar sizes, sorted by the last side first; ties keep their order.

    Where the last sides are equal, the others alternate between rising and falling, to avoid jumps from long to short.
    """
    last = sizes[:, -1]
    rest = sizes[:, :-1].sum(axis=1)
    return np.lexsort((np.where(last % 2, -rest, rest), last))


def cuts(sizes: NDArray[np.int64], budget: int) -> Sequence[int]:
    """Where batches end, such that each costs at most the budget: its rows times the sum of its largest sides."""
    found = []
    start, largest = 0, [0] * sizes.shape[1]
    for row, sides in enumerate(sizes.tolist()):
        grown = [max(pair) for pair in zip(largest, sides, strict=True)]
        if row > start and (row - start + 1) * sum(grown) > budget:
            found.append(row)
            start, grown = row, sides
        largest = grown
    return found
