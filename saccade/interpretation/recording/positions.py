"""The positions of a call's keys and queries in their sequences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from saccade.interpretation.recording.recipes import Captured
from saccade.kernels.private_torch import version

MOST_SHIFTS = 64
"""How many ways to shift a window are tried before a call counts as unrelated to the one before."""


class Positions(NamedTuple):
    """The position of the first key and of the first query.

    The first query is None if it does not follow from the keys, as in attention to another sequence: its queries follow
    those of the previous call.
    """

    key: int = 0
    query: int | None = None


START = Positions(0, 0)
FOLLOWING = Positions()


class Call(Protocol):
    """A call of a module."""

    run: int
    positions: Positions


@dataclass(eq=False)
class Foreseen:
    """A call that has not been made yet."""

    run: int
    positions: Positions = FOLLOWING


@dataclass(eq=False)
class _Last:
    """The last call of a module."""

    call: Call
    queries: int
    keys: int
    total: int  # queries since the start of the run
    calls: int  # since the start of the run
    ahead: int  # queries without a key of their own, as in an LSTMN, whose steps attend to those before
    tensor: Tensor | None  # keys, or values where these are not known
    version: int
    copy: Tensor | None  # some features of it, if it may be overwritten
    first: bool  # of the recording

    @property
    def run(self) -> int:
        return self.call.run

    @property
    def positions(self) -> Positions:
        return self.call.positions

    def is_beside(self, run: int, queries: int, calls: int) -> bool:
        """Whether it attended in the same step."""
        return (self.run, self.queries, self.calls) == (run, queries, calls)


class Tracker:
    """Follows the caches of a model's modules.

    Sizes settle most cases: a growing cache has all keys so far, and one of fixed size that is not yet full has not
    dropped any. Otherwise keys are compared with those of the previous call: a window has dropped the oldest, a cache
    that was cut back repeats positions, and attention to another sequence has the same keys again; its queries are
    those of the self-attention before it. A cache that was filled before the first call is recognised by the last key
    that this call attends to, if the module reads a text, or by growing afterwards.

    Attributes:
        texts: the paths of modules whose queries stand in the sequence of their keys.
    """

    def __init__(self) -> None:
        self.texts: set[str] = set()
        self._last: dict[str, _Last] = {}
        self._self_attention: _Last | None = None

    def locate(self, path: str, call: Call, attended: Captured, tensor: Tensor | None) -> None:
        """Finds the positions of a call.

        Args:
            path: of its module.
            call: gets the positions.
            attended: what it attended.
            tensor: (*batch, keys, dim), its keys or values.
        """
        sizes = attended.recipe.sizes(attended.tensors)
        if sizes is None:
            return
        queries, keys = sizes
        last, run = self._last.get(path), call.run
        if tensor is not None and tensor.is_nested:
            tensor = None
        same_run = last is not None and last.run == run
        total, calls = queries, 1
        if last is not None and same_run:
            total, calls = last.total + queries, last.calls + 1
        certain, ahead = False, max(queries - keys, 0)
        if last is None:
            filled = _filled(attended, queries, keys) if path in self.texts and keys > queries else 0
            certain, found = filled > 0, Positions(0, filled)
        elif not same_run and keys <= queries:
            found = FOLLOWING
        elif last.keys + queries == keys and (same_run or _continues(last, tensor)):  # it has grown
            if last.first and last.positions == START and last.keys > last.queries:
                last.call.positions = Positions(0, last.keys - last.queries)  # it was filled before
            ahead, certain = last.ahead, True
            found = Positions(last.positions.key, last.positions.key + keys - queries + ahead)
        elif same_run and total <= keys:  # not full yet
            found = Positions(last.positions.key, None if last.positions.query is None else total - queries)
        else:
            found = self._compare(last, queries, keys, tensor, same_run)
            certain = found.query is not None
        beside = self._self_attention
        if not certain and calls > 1 and beside is not None and beside.is_beside(run, queries, calls):
            found = Positions(found.key, beside.positions.query)
        if found.query is not None:
            total = found.query + queries
        kept = version(tensor) if tensor is not None else 0
        # A copy is needed only where the next call may have to be compared.
        compared = total >= keys or not same_run
        copy = _some_features(tensor).clone() if tensor is not None and kept != 0 and compared else None
        call.positions = found
        now = _Last(call, queries, keys, total, calls, ahead, tensor, kept, copy, last is None)
        self._last[path] = now
        if certain:
            self._self_attention = now

    def adopt(self, path: str, call: Call) -> None:
        """Replaces a foreseen call with the actual one."""
        last = self._last.get(path)
        if last is not None:
            call.positions, last.call = last.positions, call

    def _compare(self, last: _Last, queries: int, keys: int, tensor: Tensor | None, same_run: bool) -> Positions:
        key = last.positions.key
        if tensor is None or last.tensor is None or last.tensor.dim() != tensor.dim():
            return Positions(key if same_run else 0)
        if _unchanged(last, tensor):
            return Positions(key)
        before, now = _comparable(last, last.tensor, tensor)
        if keys == queries:  # everything is computed again
            return START if last.keys <= keys and _found(before, now[..., : last.keys, :]) else Positions()
        most = last.keys + queries - keys
        cut_back = range(most, max(most - last.queries - 1, -1, most - MOST_SHIFTS), -1)
        for shift in dict.fromkeys((*cut_back, 0)):
            old = before[..., shift : shift + keys - queries, :]
            if shift >= 0 and old.shape[-2] == keys - queries > 0 and _found(old, now[..., : keys - queries, :]):
                if shift == 0 and last.keys == keys and _found(before, now):
                    return Positions(key)  # another sequence, whose keys were computed again
                return Positions(key + shift, key + shift + keys - queries)
        return Positions(key if same_run else 0)


def _filled(attended: Captured, queries: int, keys: int) -> int:
    """How many keys come before the first query, if the last query attends to itself and to nothing after it."""
    with torch.no_grad():
        recipe, tensors = attended.recipe.resolve(attended.tensors)
        row = recipe.compute(tensors, slice(queries - 1, queries))
    seen = (row != 0).flatten(0, 2).any(0).nonzero()
    return max(int(seen.max()) + 1 - queries, 0) if len(seen) else 0


def _continues(last: _Last, tensor: Tensor | None) -> bool:
    """Whether keys begin with those of the call before."""
    if tensor is None or last.tensor is None or last.tensor.dim() != tensor.dim():
        return tensor is None
    before, now = _comparable(last, last.tensor, tensor)
    return _found(before, now[..., : last.keys, :])


def _comparable(last: _Last, then: Tensor, tensor: Tensor) -> tuple[Tensor, Tensor]:
    """Some features of the keys of the call before, and of the first row of the batch now, for the same heads."""
    before = _some_features(then) if last.copy is None else last.copy
    now = _some_features(tensor[:1])
    if before.dim() == 4:  # heads that share keys may have copies of them
        before, now = before[:, :: _ratio(before, now)], now[:, :: _ratio(now, before)]
    return before, now


def _unchanged(last: _Last, tensor: Tensor) -> bool:
    """Whether these are the very keys of the call before."""
    then = last.tensor
    return (
        then is not None
        and last.version == version(tensor) != -1
        and then.data_ptr() == tensor.data_ptr()
        and then.shape == tensor.shape
        and then.stride() == tensor.stride()
    )


def _some_features(tensor: Tensor) -> Tensor:
    """Enough features to distinguish keys."""
    return tensor[..., :: max(tensor.shape[-1] // 3, 1)]


def _ratio(many: Tensor, few: Tensor) -> int:
    return max(many.shape[1] // max(few.shape[1], 1), 1)


def _found(rows: Tensor, row: Tensor) -> bool:
    """Whether one of these rows of a batch is this one; a beam search moves them, and other sizes round otherwise."""
    if rows.shape[1:] != row.shape[1:]:
        return False
    near = torch.isclose(rows, row, rtol=1e-4, atol=1e-5)
    return bool(near.flatten(1).all(1).any())
