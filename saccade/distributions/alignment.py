"""Distributions over alignments."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from saccade.distributions.structured import Structured
from saccade.kernels.modes import visible
from saccade.masks import fitted
from saccade.structures.alignments import Alignments, MonotonicAlignments, SteppedAlignments, ahead
from saccade.structures.backend import FORBIDDEN, Potentials
from saccade.structures.semiring import log_cumulative


@dataclass(frozen=True, eq=False)
class AlignmentPosterior(Structured):
    """The posterior over alignments of a target to its source, with z (*batch, targets, sources).

    The log-partition is the log-likelihood of the target, summed over all alignments; the marginals are the posterior
    alignment. `words` (*batch, targets, sources) are the emission log-probabilities log p(y_t | a_t = s) of the target
    words, already gathered, so that no vocabulary axis is kept. Masks are bool and exclude sources and targets at the
    end. In Wu and Cotterell's terms `hard` is 0-HARD, `hard_monotonic` 0-MONO and `stepwise_monotonic` 1-MONO.
    """

    joint: bool = True

    @property
    def log_likelihood(self) -> Tensor:
        """(*batch,): log p(y), -inf where no alignment is possible."""
        return self.log_partition

    @classmethod
    def hard(
        cls, words: Tensor, scores: Tensor, *, source_mask: Tensor | None = None, target_mask: Tensor | None = None
    ) -> AlignmentPosterior:
        r"""Every step independently attends to one source: p(y_t) = \sum_s softmax(scores_t)_s p(y_t | s)."""
        dtype = words.dtype
        words, scores, _, targets = _prepare(words, scores, source_mask, target_mask)
        return cls(Alignments(targets), (_unary(words, _log_softmax(scores)),), dtype=dtype)

    @classmethod
    def hard_monotonic(
        cls, words: Tensor, scores: Tensor, *, source_mask: Tensor | None = None, target_mask: Tensor | None = None
    ) -> AlignmentPosterior:
        r"""The same without moving back: p(a_t = s | a_{t-1} = k) is softmax(scores_t) over s >= k."""
        dtype = words.dtype
        words, scores, _, targets = _prepare(words, scores, source_mask, target_mask)
        # The weight of moving from k to s at step t is scores_t(s) minus the total over all that may follow k at t.
        following = log_cumulative(scores.flip(-1)).flip(-1)
        leaving = _next_step(-following, targets)
        first = torch.zeros_like(following) if not following.numel() else _first_step(-following[..., :1])
        unary = _unary(words, scores) + leaving + first
        return cls(MonotonicAlignments(targets), (unary,), dtype=dtype)

    @classmethod
    def stepwise_monotonic(
        cls, words: Tensor, moves: Tensor, *, source_mask: Tensor | None = None, target_mask: Tensor | None = None
    ) -> AlignmentPosterior:
        r"""Step t moves forward by m positions: p(a_t = k + m | a_{t-1} = k) = softmax(moves_{tk})_m, m = 0..W - 1.

        `moves` (*batch, targets, sources, W) depend on the previous position. Moves past the last source are excluded
        and the others renormalised; the first step moves from the first source.
        """
        if moves.dim() != words.dim() + 1 or moves.shape[:-1] != words.shape or not moves.shape[-1]:
            raise ValueError(
                f"moves must be (*batch, targets, sources, W) with W >= 1, got {tuple(moves.shape)} for words "
                f"{tuple(words.shape)}."
            )
        dtype = words.dtype
        words, _, sources, targets = _prepare(words, words, source_mask, target_mask)
        _check_order(sources, "sources")
        steps = log_moves(_present(moves, targets), sources)
        unary = torch.where(sources, words, FORBIDDEN)
        return cls(SteppedAlignments(targets), (unary, steps), dtype=dtype)

    @classmethod
    def segment_to_segment(
        cls,
        words: Tensor,
        scores: Tensor,
        *,
        source_mask: Tensor | None = None,
        target_mask: Tensor | None = None,
        to_the_end: bool = False,
    ) -> AlignmentPosterior:
        r"""At each source the step emits with probability \sigma(scores), or shifts to the next one.

        p(a_t = s | a_{t-1} = k) = \sigma(scores_{ts}) \prod_{k \le l < s} \sigma(-scores_{tl}). With `to_the_end` the
        last word must come from the last source.
        """
        dtype = words.dtype
        words, scores, sources, targets = _prepare(words, scores, source_mask, target_mask, masked=0.0)
        # The weight of shifting from k to s is the weight of all shifts before s minus that of all shifts before k.
        shifts = F.pad(torch.where(sources, F.logsigmoid(-scores), 0.0).cumsum(-1), (1, 0))[..., :-1]
        emit = torch.where(sources, F.logsigmoid(scores), FORBIDDEN)
        unary = _unary(words, emit) + shifts + _next_step(-shifts, targets)
        last = None
        if to_the_end:
            places = torch.arange(scores.shape[-1], device=scores.device)
            last = (sources[..., 0, :] * places).amax(-1) if scores.numel() else None
        return cls(MonotonicAlignments(targets, last), (unary,), dtype=dtype)

    def parts(self, z: Tensor) -> Potentials:
        unary = z.to(torch.float64)
        if not isinstance(self.structure, SteppedAlignments):
            return (unary,)
        return unary, self.structure.moves(unary, self.potentials[1].shape[-1])


def log_moves(moves: Tensor, sources: Tensor) -> Tensor:
    """log p(m | k) for scores `moves` (*batch, sources, W), excluding moves past `sources`, bool (*batch, sources)."""
    return _log_softmax(torch.where(ahead(sources, moves.shape[-1]), moves, FORBIDDEN))


def _log_softmax(scores: Tensor) -> Tensor:
    """Log-softmax that keeps `FORBIDDEN` scores, even if all of them are."""
    return torch.where(scores <= FORBIDDEN / 10, FORBIDDEN, torch.log_softmax(scores, -1))


def _prepare(
    words: Tensor,
    scores: Tensor,
    source_mask: Tensor | None,
    target_mask: Tensor | None,
    masked: float = FORBIDDEN,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Both in float64, and the masks expanded: sources (*batch, targets, sources), targets (*batch, targets).

    -inf becomes `FORBIDDEN`, whose gradients are finite; the scores of masked sources become `masked`.
    """
    if words.dim() < 2 or words.shape != scores.shape:
        raise ValueError(
            f"words and scores must both be (*batch, targets, sources), got {tuple(words.shape)} and "
            f"{tuple(scores.shape)}."
        )
    batch, targets, sources = words.shape[:-2], words.shape[-2], words.shape[-1]
    allowed = torch.ones(words.shape, dtype=torch.bool, device=words.device)
    if source_mask is not None:
        allowed = fitted(source_mask, (*batch, sources), "the sources'").unsqueeze(-2).expand(words.shape)
    steps = None
    if target_mask is not None:
        steps = fitted(target_mask, (*batch, targets), "the targets'")
        _check_order(steps, "targets")
    words = _present(torch.where(allowed, words, 0.0), steps)
    return words, _present(torch.where(allowed, scores, masked), steps), allowed, steps


def _present(values: Tensor, steps: Tensor | None) -> Tensor:
    """In float64, with zeros for missing steps and `FORBIDDEN` for -inf."""
    if steps is not None:
        values = torch.where(steps.reshape(*steps.shape, *(1,) * (values.dim() - steps.dim())), values, 0.0)
    return values.to(torch.float64).clamp(min=FORBIDDEN)


def _check_order(mask: Tensor, what: str) -> None:
    if visible(mask) and bool((mask[..., 1:] & ~mask[..., :-1]).any()):
        raise ValueError(f"masked {what} must be the last ones: pad at the end.")


def _unary(words: Tensor, prior: Tensor) -> Tensor:
    return (words + prior).clamp(min=FORBIDDEN)


def _next_step(leaving: Tensor, steps: Tensor | None) -> Tensor:
    """The weight of leaving each source at the next step; zero after the last step."""
    after = F.pad(leaving, (0, 0, 0, 1))[..., 1:, :]
    if steps is not None:
        after = torch.where(F.pad(steps, (0, 1))[..., 1:, None], after, 0.0)
    return torch.where(after.abs() < -FORBIDDEN / 10, after, 0.0)


def _first_step(leaving: Tensor) -> Tensor:
    """The same for the first step, which leaves the first source: (*batch, targets, 1), zero at the others."""
    first = torch.arange(leaving.shape[-2], device=leaving.device).unsqueeze(-1) == 0
    return torch.where(first & (leaving.abs() < -FORBIDDEN / 10), leaving, 0.0)
