"""Transitions of an alignment from one target word to the next."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.checks import check_count
from saccade.decoders.sources import Sources
from saccade.distributions.alignment import AlignmentPosterior, log_moves
from saccade.scores import Score
from saccade.structures import FORBIDDEN
from saccade.structures.semiring import log_cumulative


def single(x: Tensor) -> Tensor:
    """In at least float32: lower precision would round positions and cannot represent `FORBIDDEN`."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


class Transitions(nn.Module):
    """p(a_t = s | a_{t-1} = k, y_<t): the source position of the next word, given that of the last one.

    Subclasses implement `alignment` and `expect`, which must agree, `choose` if they are `online`, and `scores` if
    these do not come from a score.
    """

    online: bool = False
    """Whether `choose` never looks past the position that it chooses."""

    score: Score | None

    def __init__(self, *, score: Score | None = None) -> None:
        super().__init__()
        if score is not None and (score.stateful or score.feature_wise):
            raise ValueError(
                f"{type(score).__name__} cannot score alignments: choose a stateless score with one value for each "
                "pair."
            )
        self.score = score

    def prepare(self, keys: Tensor, mask: Tensor) -> object:
        """Prepares the source states (batch, sources, dim) for scoring."""
        assert self.score is not None
        return self.score.prepare(keys, mask=mask)

    def scores(self, query: Tensor, sources: Sources) -> Tensor:
        """Scores (batch, steps, sources, ...) of the decoder's states (batch, steps, dim), in at least float32."""
        assert self.score is not None
        return single(self.score.compare(query, sources.prepared))

    def first(self, scores: Tensor) -> Tensor:
        """The scores (batch, sources, ...) of the first step, which has no predecessor."""
        return scores

    def alignment(self, words: Tensor, scores: Tensor, mask: Tensor, target_mask: Tensor | None) -> AlignmentPosterior:
        """The distribution over alignments of targets to sources, given log p(y_t | a_t) (batch, steps, sources)."""
        raise NotImplementedError

    def expect(self, arrived: Tensor, scores: Tensor, mask: Tensor) -> Tensor:
        """log p(a_t | y_<t) (batch, sources), given log p(a_{t-1} | y_<t) and the scores of step t."""
        raise NotImplementedError

    def choose(self, position: Tensor, scores: Tensor, mask: Tensor) -> Tensor:
        """a_t (batch,), the most likely position after a_{t-1} (batch,)."""
        raise NotImplementedError


class FreeTransitions(Transitions):
    """Every step chooses independently, by the softmax of the scores."""

    def alignment(self, words: Tensor, scores: Tensor, mask: Tensor, target_mask: Tensor | None) -> AlignmentPosterior:
        return AlignmentPosterior.hard(words, scores, source_mask=mask, target_mask=target_mask)

    def expect(self, arrived: Tensor, scores: Tensor, mask: Tensor) -> Tensor:
        return torch.where(mask, torch.where(mask, scores, FORBIDDEN).log_softmax(-1), FORBIDDEN)


class MonotonicTransitions(Transitions):
    """The softmax of the scores over the sources from the last one on.

    Scores decrease by a learned slope from each source to the next, which makes remaining sources less likely the
    further ahead they are. Without it, an untrained model reaches the last source after a few words and has to learn
    from there.
    """

    def __init__(self, *, score: Score) -> None:
        super().__init__(score=score)
        self.slope = nn.Parameter(torch.ones(()))

    def scores(self, query: Tensor, sources: Sources) -> Tensor:
        scores = super().scores(query, sources)
        return scores - self.slope.to(scores.dtype) * torch.arange(scores.shape[-1], device=scores.device)

    def alignment(self, words: Tensor, scores: Tensor, mask: Tensor, target_mask: Tensor | None) -> AlignmentPosterior:
        return AlignmentPosterior.hard_monotonic(words, scores, source_mask=mask, target_mask=target_mask)

    def expect(self, arrived: Tensor, scores: Tensor, mask: Tensor) -> Tensor:
        scores = torch.where(mask, scores, FORBIDDEN)
        following = log_cumulative(scores.flip(-1)).flip(-1)  # total over the sources that may follow each one
        leaving = torch.where(mask, arrived - following, FORBIDDEN)
        return torch.where(mask, scores + log_cumulative(leaving), FORBIDDEN)


class MoveTransitions(Transitions):
    r"""Each step moves forward by m = 0..W - 1 sources, depending on the decoder state and the last source.

    .. math:: p(a_t = k + m \mid a_{t-1} = k) = \operatorname{softmax}(U h_t + V \bar h_k)_m

    Moves past the last source are excluded. The first step starts from before the first source, so that copying means
    moving by one at every step.
    """

    online = True

    def __init__(self, *, query_dim: int, key_dim: int, width: int) -> None:
        super().__init__()
        check_count("width", width, least=2)  # to stay, and to move by one
        self.query_proj = nn.Linear(query_dim, width)
        self.key_proj = nn.Linear(key_dim, width, bias=False)

    def prepare(self, keys: Tensor, mask: Tensor) -> object:
        return self.key_proj(keys)

    def scores(self, query: Tensor, sources: Sources) -> Tensor:
        return single(self.query_proj(query).unsqueeze(2) + sources.prepared.unsqueeze(1))

    def first(self, scores: Tensor) -> Tensor:
        return F.pad(scores[..., 1:], (0, 1), value=FORBIDDEN)

    def alignment(self, words: Tensor, scores: Tensor, mask: Tensor, target_mask: Tensor | None) -> AlignmentPosterior:
        return AlignmentPosterior.stepwise_monotonic(words, scores, source_mask=mask, target_mask=target_mask)

    def expect(self, arrived: Tensor, scores: Tensor, mask: Tensor) -> Tensor:
        leaving = arrived.unsqueeze(-1) + log_moves(scores, mask)
        size = arrived.shape[-1]
        arriving = [
            F.pad(leaving[..., : max(size - m, 0), m], (min(m, size), 0), value=FORBIDDEN)
            for m in range(leaving.shape[-1])
        ]
        return torch.where(mask, torch.logsumexp(torch.stack(arriving, dim=-1), -1), FORBIDDEN)

    def choose(self, position: Tensor, scores: Tensor, mask: Tensor) -> Tensor:
        rows = torch.arange(position.shape[0], device=position.device)
        return position + log_moves(scores, mask)[rows, position].argmax(-1)


class ShiftTransitions(Transitions):
    r"""At each source, from the last one on, the step emits with probability \sigma(score) or shifts to the next.

    At the last source it always emits.
    """

    online = True

    def scores(self, query: Tensor, sources: Sources) -> Tensor:
        scores = super().scores(query, sources)
        last = sources.mask & ~F.pad(sources.mask, (0, 1))[:, 1:]
        return scores.masked_fill(last.unsqueeze(1), 1e4)

    def alignment(self, words: Tensor, scores: Tensor, mask: Tensor, target_mask: Tensor | None) -> AlignmentPosterior:
        return AlignmentPosterior.segment_to_segment(words, scores, source_mask=mask, target_mask=target_mask)

    def expect(self, arrived: Tensor, scores: Tensor, mask: Tensor) -> Tensor:
        shift = torch.where(mask, F.logsigmoid(-scores), 0.0)
        shifts = F.pad(shift.cumsum(-1), (1, 0))[..., :-1]
        here = torch.where(mask, F.logsigmoid(scores) + shifts, FORBIDDEN)
        return torch.where(mask, here + log_cumulative(torch.where(mask, arrived - shifts, FORBIDDEN)), FORBIDDEN)

    def choose(self, position: Tensor, scores: Tensor, mask: Tensor) -> Tensor:
        places = torch.arange(scores.shape[-1], device=scores.device)
        stops = (scores >= 0) & mask & (places >= position.unsqueeze(-1))  # always includes the last source
        return stops.to(torch.uint8).argmax(-1)
