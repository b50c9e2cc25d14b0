"""Which positions of a sequence the keys and queries of a call stand at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from saccade.interpretation.recording.naming import Place
from saccade.kernels.private_torch import version

MOST_SHIFTS = 64
"""How many ways to shift a window are tried before a call counts as unrelated to the one before."""


class Positions(NamedTuple):
    """The position of the first key and of the first query.

    The first query is None where keys do not tell it, as in attention to another sequence: its queries follow those of
    the call before.
    """

    key: int = 0
    query: int | None = None


START = Positions(0, 0)


@dataclass(eq=False)
class _Last:
    """The last call of a module."""

    run: int
    positions: Positions
    queries: int
    keys: int
    total: int  # queries since the start of the run
    calls: int  # since the start of the run
    ahead: int  # queries without a key of their own, as in an LSTMN, whose steps attend to those before
    tensor: Tensor | None  # keys, or values where these are not known
    version: int
    copy: Tensor | None  # some features of it, if it may be overwritten

    def is_beside(self, run: int, queries: int, calls: int) -> bool:
        """Whether it attended in the same step."""
        return (self.run, self.queries, self.calls) == (run, queries, calls)


class Tracker:
    """Follows the caches of a model's modules.

    Sizes tell most of it: a cache that grows holds all keys so far, and one of fixed size that is not full yet has not
    dropped any. Otherwise keys are compared with those of the call before: a window has dropped the oldest, a cache
    that was cut back repeats positions, and attention to another sequence has the same keys again; its queries are
    those of the self-attention before it.
    """

    def __init__(self) -> None:
        self._last: dict[Place, _Last] = {}
        self._self_attention: _Last | None = None

    def locate(self, place: Place, run: int, sizes: tuple[int, int], tensor: Tensor | None) -> Positions:
        """The positions of a call of the module at this place.

        Args:
            place: the module's.
            run: the number of the run of the model.
            sizes: how many queries and keys it has.
            tensor: (*batch, keys, dim), the keys or values of the call.
        """
        last = self._last.get(place)
        queries, keys = sizes
        if tensor is not None and tensor.is_nested:
            tensor = None
        same_run = last is not None and last.run == run
        total, calls = queries, 1
        if last is not None and same_run:
            total, calls = last.total + queries, last.calls + 1
        certain, ahead = False, max(queries - keys, 0)
        if last is None:
            found = START
        elif not same_run and keys <= queries:
            found = Positions()
        elif last.keys + queries == keys:  # it has grown
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
        now = self._last[place] = _Last(run, found, queries, keys, total, calls, ahead, tensor, kept, copy)
        if certain:
            self._self_attention = now
        return found

    def _compare(self, last: _Last, queries: int, keys: int, tensor: Tensor | None, same_run: bool) -> Positions:
        key = last.positions.key
        if tensor is None or last.tensor is None or last.tensor.dim() != tensor.dim():
            return Positions(key if same_run else 0)
        if _unchanged(last, tensor):
            return Positions(key)
        before = _some_features(last.tensor) if last.copy is None else last.copy
        now = _some_features(tensor[:1])
        if before.dim() == 4:  # heads that share keys may have copies of them
            before, now = before[:, :: _ratio(before, now)], now[:, :: _ratio(now, before)]
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
    """Enough features to tell keys apart."""
    return tensor[..., :: max(tensor.shape[-1] // 3, 1)]


def _ratio(many: Tensor, few: Tensor) -> int:
    return max(many.shape[1] // max(few.shape[1], 1), 1)


def _found(rows: Tensor, row: Tensor) -> bool:
    """Whether one of these rows of a batch is this one; a beam search moves them, and other sizes round otherwise."""
    if rows.shape[1:] != row.shape[1:]:
        return False
    near = torch.isclose(rows, row, rtol=1e-4, atol=1e-5)
    return bool(near.flatten(1).all(1).any())
