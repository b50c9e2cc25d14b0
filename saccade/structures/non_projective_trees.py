"""Dependency trees whose arcs may cross."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from saccade.structures.backend import FORBIDDEN, Potentials
from saccade.structures.semiring import Plus, log_plus
from saccade.structures.spanning_tree import best_tree
from saccade.structures.trees import Trees


class NonProjectiveTrees(Trees):
    r"""All dependency trees, by the matrix-tree theorem in O(n^3).

    .. math:: Z = \det(\operatorname{diag}(r) + L), \qquad L = \operatorname{diag}(A \mathbf{1}) - A, \qquad
        A_{dh} = \exp \theta_{dh}, \quad r_d = \exp \theta_{dd}

    The determinant is computed by eliminating one word after another: A_{ij} grows by A_{ik} A_{kj} / d_k, where d_k is
    the total weight leaving k. All terms are positive and sums are taken in log space, so nothing cancels, however far
    apart the potentials are. For a single root, roots are made so rare that two of them have negligible weight.

    Shapes:
        potentials: one tensor (*batch, n, n), rows = dependents, columns = heads, roots on the diagonal.

    Args:
        present: bool (*batch, n), True for words that are present; None for all of them.
        single_root: whether exactly one word is a root, rather than one or more.
    """

    projective = False
    marginal_error = 1e-12  # elimination rounds, and rare roots are not quite impossible

    def log_partition(self, potentials: Potentials, plus: Plus = log_plus) -> Tensor:
        if plus is not log_plus:
            raise ValueError("the matrix-tree theorem only supports log_plus.")
        (arcs,) = potentials
        size = arcs.shape[-1]
        if size == 0:
            return arcs.new_zeros(arcs.shape[:-2])
        arcs, rare, least = self._complete(arcs)
        total = torch.zeros_like(arcs[..., 0, 0])
        for k in range(size - 1, -1, -1):
            # For the words up to k; the diagonal, where no word is its own head, holds the weight of arcs to the root.
            away = torch.logsumexp(arcs[..., k, : k + 1], -1)
            total = total + away
            through = arcs[..., :k, k].unsqueeze(-1) + (arcs[..., k, :k] - away.unsqueeze(-1)).unsqueeze(-2)
            to_root = arcs[..., :k, k] + (arcs[..., k, k] - away).unsqueeze(-1)
            on_diagonal = torch.eye(k, dtype=torch.bool, device=arcs.device)
            through = torch.where(on_diagonal, to_root.unsqueeze(-1), through)
            # Not logaddexp: its second derivative is NaN for weights that are far apart from each other.
            arcs = torch.logsumexp(torch.stack([arcs[..., :k, :k], through]), 0)
        return torch.where(total + rare > least, total + rare, FORBIDDEN)

    def _complete(self, arcs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Arcs with every missing word made a free root, and the amount by which roots were made rarer.

        The third result is an upper bound on the total if only trees with several roots exist.
        """
        size = arcs.shape[-1]
        diagonal = torch.eye(size, dtype=torch.bool, device=arcs.device)
        rare = arcs.new_zeros(arcs.shape[:-2])
        least = torch.full_like(rare, FORBIDDEN)
        if self.single_root:
            allowed = arcs.detach() > FORBIDDEN / 10
            spread = torch.where(allowed, arcs.detach().abs(), 0.0).amax((-2, -1))
            present = size if self.present is None else self.present.sum(-1)
            # More than the other arcs of any two trees can differ by, plus 60: exp(-60) is negligible in float64.
            some = torch.as_tensor(present, device=arcs.device) > 0
            rare = torch.where(some, 4 * size * (spread + math.log(size + 1)) + 60, 0.0)
            least = torch.where(some, -size * spread - 30, FORBIDDEN)
            arcs = torch.where(diagonal, arcs - rare[..., None, None], arcs)
        if self.present is not None:
            present = self.present.expand(arcs.shape[:-1])
            both = present.unsqueeze(-1) & present.unsqueeze(-2)
            missing_root = diagonal & ~present.unsqueeze(-1)
            arcs = torch.where(both, arcs, torch.where(missing_root, 0.0, FORBIDDEN).to(arcs))
        return arcs, rare, least

    def best(self, potentials: Potentials) -> Potentials:
        """By the Chu-Liu/Edmonds algorithm."""
        (arcs,) = potentials
        if arcs.numel() == 0:
            return (torch.zeros_like(arcs),)
        complete, *_ = self._complete(arcs.detach())
        heads = best_tree(complete.reshape(-1, *arcs.shape[-2:])).reshape(arcs.shape[:-1])
        return (self._indicator(heads, arcs),)

    def sample(self, potentials: Potentials, n: int) -> Potentials:
        """Samples the head of one word after another, given the previous ones."""
        arcs = potentials[0].detach().expand(n, *potentials[0].shape)
        for d in range(arcs.shape[-1]):
            (marginals,) = self.backend().evaluate((arcs,))[1]
            weights = marginals[..., d, :].clamp(min=0)
            some = (weights > 0).any(-1, keepdim=True)
            weights = torch.where(some, weights, 1.0)
            head = torch.multinomial(weights.flatten(0, -2), 1).view(*weights.shape[:-1], 1)
            chosen = torch.zeros_like(weights, dtype=torch.bool).scatter(-1, head, True) | ~some
            row = torch.arange(arcs.shape[-1], device=arcs.device).unsqueeze(-1) == d
            arcs = torch.where(row & ~chosen.unsqueeze(-2), FORBIDDEN, arcs)
        (marginals,) = self.backend().evaluate((arcs,))[1]
        return (marginals.round(),)

    def contains(self, parts: Potentials) -> Tensor:
        (arcs,) = parts
        one_head = (arcs.sum(-1) == (1 if self.present is None else self.present)).all(-1)
        only = torch.where(arcs == 1, 0.0, FORBIDDEN).to(torch.float64)
        return one_head & (self.log_partition((only,)).abs() < 0.5)

    def _indicator(self, heads: Tensor, arcs: Tensor) -> Tensor:
        """Zeros and ones (*batch, n, n) for the heads, all zero for missing words and where no tree exists."""
        size = arcs.shape[-1]
        chosen = torch.nn.functional.one_hot(heads, size).to(arcs)
        if self.present is not None:
            chosen = chosen * self.present.unsqueeze(-1)
        used = torch.where(chosen > 0, arcs, 0.0).sum((-2, -1))
        is_tree = used > FORBIDDEN / 10
        if self.single_root:
            is_tree &= chosen.diagonal(dim1=-2, dim2=-1).sum(-1) <= 1
        return chosen * is_tree[..., None, None]
