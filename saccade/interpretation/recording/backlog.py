"""Work that is deferred until the trace is read: positions of keys, and weights in place of keys."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from functools import cached_property
from types import FrameType

from torch import Tensor

from saccade.interpretation.recording.kept import Cache, Kept
from saccade.interpretation.recording.naming import Names, kind_of
from saccade.interpretation.recording.positions import Foreseen, Positions, Tracker
from saccade.interpretation.recording.recipes import Captured, Given, scaled_dot
from saccade.interpretation.recording.runs import Runs
from saccade.interpretation.recording.spare import LEAST
from saccade.interpretation.recording.steps import settle
from saccade.kernels.private_torch import lengths

SLACK = 12 << 20
"""How many bytes of unshared keys and of weights are kept before these keys are replaced by weights."""


_Step = tuple[str, int, Tensor, Tensor | None, float | None, bool, Cache, int]
"""Path, run, query, mask, scale, whether it is causal, keys, and how many of these."""


class Backlog:
    """Calls that are not fully worked out yet.

    A call costs the model little: its tensors are kept, and interpreted when the trace is read. The steps of a
    generation share the keys of the last one. A beam search reorders them, so each step has new ones: once these take
    much memory, the weights of the steps are kept instead. Keys that may be overwritten are processed immediately.

    Args:
        names: the modules of the model.
        runs: its runs.
        noted: gets all calls in order.

    Attributes:
        taken: how many calls were taken in by `step`.
    """

    def __init__(self, names: Names, runs: Runs, noted: list[tuple[str, Kept]]) -> None:
        self._names = names
        self._runs = runs
        self._ended = False
        self._noted = noted
        self._spare, names.structure.spare = names.structure.spare, deque()
        self.taken = 0
        self._steps: list[_Step] = []
        self._waiting: list[tuple[str, Kept]] = []
        self._begun: set[str] = set()
        self._last: dict[str, tuple[Cache, list[Kept]]] = {}
        self._left: dict[str, list[Kept]] = {}
        self._bytes = 0
        self._weights = 0
        self._foreseen: str | None = None

    @cached_property
    def _tracker(self) -> Tracker:
        return Tracker()

    def add(self, path: str, kept: Kept, attended: Captured, values: Tensor | None, frame: FrameType) -> None:
        """Adds a call, after all earlier ones.

        Args:
            path: of its module.
            kept: its tensors.
            attended: the call.
            values: what it read, if its keys are not known.
            frame: of the call.
        """
        if self._steps:
            self.gather()
        self._noted.append((path, kept))
        if self._spare:
            self._spare.popleft()
        foreseen, self._foreseen = self._foreseen == path, None
        last = self._last.get(path)
        key = kept.lasting("key")
        waits = key is not None and not key.is_nested
        if last is None and path not in self._begun and not (waits and key is kept.lasting("query")):
            self._begin(path, frame)
        if foreseen:
            self._tracker.adopt(path, kept)
        elif waits:
            self._waiting.append((path, kept))
        else:
            self.locate()
            self._tracker.locate(path, kept, attended, attended.tensors.get("key", values))
        if key is not None and waits:
            self._share(path, kept, key, last)

    def _share(self, path: str, kept: Kept, key: Tensor, last: tuple[Cache, list[Kept]] | None) -> None:
        """Shares the keys of a call with the calls before, or counts what these take if they cannot be shared."""
        if last is not None:
            cache, calls = last
            if cache.key.data_ptr() == key.data_ptr() and cache.key.shape == key.shape:
                return  # of another sequence, and all steps have them
            if cache.continues(key):
                cache.replace(key)
                kept.share(cache)
                calls.append(kept)
                return
            self._left_behind(path, cache, calls)
        cache = Cache(key)
        kept.share(cache)
        self._last[path] = (cache, [kept])

    def step(
        self,
        frame: FrameType,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        *,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> bool:
        """Takes in the usual call of `F.scaled_dot_product_attention`, in a fraction of the time that `add` takes.

        That is the first call of a module, or one that adds to its keys, with tensors that were never changed in place.
        Nearly all that a call costs is fetching code and objects that the model has pushed out of the processor's
        caches. So this does what cannot wait, and little else, in one function.

        Args:
            frame: of the call.
            query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa: its arguments.

        Returns:
            Whether the call is dealt with.
        """
        sizes = lengths(query, key, attn_mask)
        if sizes is None or (scale is not None and type(scale) is not float):
            return False
        code, names = frame.f_code, self._names
        first = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
        path = names.paths.get(id(getattr(first, "__dict__", None)))  # usually a method of the module has called
        if path is None:
            path = names.path(frame)
            if path is None:
                return True
        path = path or names.whole
        last = self._last.get(path)
        if last is None:
            if sizes[1] > sizes[0] or path in self._begun:
                return False
            cache = Cache(key)
            self._last[path] = (cache, [])
        else:
            cache = last[0]
            if cache.key is not key and not cache.grow(key):
                return False
        runs = self._runs
        run = runs.count - 1 if runs.token() is not None else runs.number(frame)
        self._steps.append((path, run, query, attn_mask, scale, is_causal, cache, sizes[1]))
        self.taken += 1
        if self._spare:
            self._spare.popleft()
        return True

    def tensors(self) -> Iterator[Sequence[Tensor]]:
        """The queries and keys of the calls that `gather` has not noted yet; none if they are short."""
        if any(each[2].nbytes + each[6].key.nbytes >= LEAST for each in (*self._steps[:1], *self._steps[-1:])):
            for step in self._steps:
                yield step[2], step[6].key

    @property
    def paths(self) -> set[str]:
        """The paths of the modules that were called."""
        return self._begun | self._last.keys()

    def gather(self) -> None:
        """Notes the calls of `step`."""
        steps, self._steps = self._steps, []
        for path, run, query, mask, scale, causal, cache, keys in steps:
            tensors = {"query": query} if mask is None else {"query": query, "mask": mask}
            kept = Kept.step(scaled_dot(scale, causal), tensors, cache, keys, run)
            self._noted.append((path, kept))
            self._waiting.append((path, kept))
            self._last[path][1].append(kept)

    def _left_behind(self, path: str, cache: Cache, calls: list[Kept]) -> None:
        """Counts what keys take that cannot be shared with later calls."""
        cache.end()
        self._bytes += cache.key.nbytes
        self._left.setdefault(path, []).extend(calls)
        if self._bytes > max(SLACK - self._weights, self._weights):
            self._settle()

    def foresee(self, path: str, run: int, weights: Tensor, keys: Tensor, frame: FrameType) -> Positions:
        """The positions of the next call, for changes that depend on them; `add` must follow."""
        if path not in self._begun:
            self._begin(path, frame)
        self.locate()
        call = Foreseen(run)
        self._tracker.locate(path, call, Captured(Given(), {"weights": weights.detach()}), keys)
        self._foreseen = path
        return call.positions

    def _begin(self, path: str, frame: FrameType) -> None:
        """The first call of a module."""
        self._begun.add(path)
        kind = kind_of(path)
        module = next(self._names.modules_of(frame), None)
        if kind == "self" or (kind is None and getattr(module, "is_causal", None) is True):
            self._tracker.texts.add(path)  # queries and keys belong to the same sequence

    def locate(self) -> bool:
        """Finds the positions of all calls; returns whether nothing else is left to do."""
        self.gather()
        waiting, self._waiting = self._waiting, []
        for path, kept in waiting:
            tensors = kept.tensors
            self._tracker.locate(path, kept, Captured(kept.recipe, tensors), tensors["key"])
        return self._ended

    def end(self) -> None:
        """Marks the end: no more calls follow."""
        self._ended = True
        del self._names, self._runs  # the trace should not keep the model
        self._spare.clear()
        for cache, _ in self._last.values():
            cache.end()

    def _settle(self) -> None:
        self.locate()
        for calls in self._left.values():
            self._weights += settle(calls)
        self._left, self._bytes = {}, 0
