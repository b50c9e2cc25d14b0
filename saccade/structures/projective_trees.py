"""Dependency trees without crossing arcs."""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.structures.backend import FORBIDDEN, Potentials
from saccade.structures.semiring import Plus, log_plus
from saccade.structures.tokens import gather_tokens, pack
from saccade.structures.trees import Trees


class ProjectiveTrees(Trees):
    r"""Projective dependency trees, by Eisner's algorithm in O(n^3).

    .. math:: I(s, t) = \bigoplus_u C_R(s, u) + C_L(u + 1, t), \qquad
        C_R(s, t) = \bigoplus_{u > s} \theta_{us} + I(s, u) + C_R(u, t), \qquad
        C_L(s, t) = \bigoplus_{u < t} C_L(s, u) + \theta_{ut} + I(u, t)

    \theta_{dh} is the potential of head h for dependent d, and \theta_{dd} that of d as a root. C_R(s, t) covers the
    words s..t with head s, C_L(s, t) those with head t.

    Shapes:
        potentials: one tensor (*batch, n, n), rows = dependents, columns = heads.

    Args:
        present: bool (*batch, n), True for words that are present; None for all of them.
        single_root: whether exactly one word is a root, rather than one or more.
    """

    projective = True

    def log_partition(self, potentials: Potentials, plus: Plus = log_plus) -> Tensor:
        (arcs,) = potentials
        size = arcs.shape[-1]
        if size == 0:
            return arcs.new_zeros(arcs.shape[:-2])
        order, lengths = pack(self.present, arcs)
        arcs = gather_tokens(arcs, order)
        left, right = _charts(arcs, plus)
        roots = arcs.diagonal(dim1=-2, dim2=-1)
        join = self._one_root if self.single_root else self._roots
        totals = join(left, right, roots, plus)
        totals = torch.cat([torch.zeros_like(totals[..., :1]), totals], dim=-1)
        return totals.gather(-1, lengths.unsqueeze(-1)).squeeze(-1)

    @staticmethod
    def _one_root(left: Tensor, right: Tensor, roots: Tensor, plus: Plus) -> Tensor:
        """(*batch, n): the total for the first t + 1 words: those before and after the root."""
        return plus((left[..., 0, :] + roots).unsqueeze(-1) + right, -2)

    @staticmethod
    def _roots(left: Tensor, right: Tensor, roots: Tensor, plus: Plus) -> Tensor:
        """(*batch, n): the same for one or more roots in sequence."""
        size = roots.shape[-1]
        totals: list[Tensor] = []  # for the first t words, with all roots among them
        arcs = []  # the words up to root u, before its dependents on the right
        for t in range(size):
            before = torch.stack([torch.zeros_like(roots[..., 0]), *totals], dim=-1)
            arcs.append(roots[..., t] + plus(before + left[..., : t + 1, t], -1))
            totals.append(plus(torch.stack(arcs, dim=-1) + right[..., : t + 1, t], -1))
        return torch.stack(totals, dim=-1)


def _charts(arcs: Tensor, plus: Plus) -> tuple[Tensor, Tensor]:
    """C_L and C_R (*batch, n, n), [s, t] from s to t, `FORBIDDEN` where s > t; all spans of one width at once.

    Tables are indexed both by the start and by the end of a span, with the width on the last axis, so that all
    alternatives for all spans of one width are two slices.
    """
    size = arcs.shape[-1]
    none = arcs.new_zeros(*arcs.shape[:-2], size, 1)
    right_start = right_end = left_start = left_end = none
    open_right_start = open_left_end = none[..., :0]  # widths from 1
    lefts, rights = [none[..., 0]], [none[..., 0]]
    for width in range(1, size):
        starts, ends = slice(0, size - width), slice(width, size)
        split = plus(right_start[..., starts, :] + left_end[..., ends, :].flip(-1), -1)
        open_right = split + arcs.diagonal(-width, -2, -1)  # head s, dependent t: the entry [t, s]
        open_left = split + arcs.diagonal(width, -2, -1)
        open_right_start = _grow(open_right_start, open_right, width, at_end=False)
        open_left_end = _grow(open_left_end, open_left, width, at_end=True)
        right = plus(open_right_start[..., starts, :] + right_end[..., ends, :].flip(-1), -1)
        left = plus(left_start[..., starts, :] + open_left_end[..., ends, :].flip(-1), -1)
        right_start = _grow(right_start, right, width, at_end=False)
        right_end = _grow(right_end, right, width, at_end=True)
        left_start = _grow(left_start, left, width, at_end=False)
        left_end = _grow(left_end, left, width, at_end=True)
        lefts.append(left)
        rights.append(right)
    return _by_width(lefts, size), _by_width(rights, size)


def _grow(table: Tensor, spans: Tensor, width: int, at_end: bool) -> Tensor:
    padding = (width, 0) if at_end else (0, width)
    return torch.cat([table, torch.nn.functional.pad(spans, padding, value=FORBIDDEN).unsqueeze(-1)], dim=-1)


def _by_width(diagonals: list[Tensor], size: int) -> Tensor:
    """Builds (*batch, n, n) from its diagonals, from the main one upwards."""
    padded = [torch.nn.functional.pad(d, (0, size - d.shape[-1]), value=FORBIDDEN) for d in diagonals]
    by_start = torch.stack(padded, dim=-1)  # [s, width]
    width = torch.arange(size, device=by_start.device)
    width = width - width.unsqueeze(-1)  # [s, t] -> t - s
    spans = by_start.gather(-1, width.clamp(min=0).expand(by_start.shape))
    return torch.where(width >= 0, spans, FORBIDDEN)
