"""The likelihood of a target, summed over all alignments to the source."""

from torch import Tensor

from saccade.distributions.alignment import AlignmentPosterior
from saccade.losses.base import Reduction, reduce


def segment_to_segment_loss(
    words: Tensor,
    scores: Tensor,
    *,
    source_mask: Tensor | None = None,
    target_mask: Tensor | None = None,
    to_the_end: bool = False,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""The negative log-likelihood of the target under a model that reads the source from left to right.

    .. math:: \ell = -\log \sum_{a_1 \le \dots \le a_T} \prod_t p(y_t \mid a_t)\, \sigma(s_{t a_t})
        \prod_{a_{t-1} \le l < a_t} \sigma(-s_{tl})

    `AlignmentPosterior.segment_to_segment` gives the posterior alignment with it.

    Shapes:
        words (*batch, targets, sources): log p(y_t | a_t) of the target words only; scores of the same
        shape; source_mask (*batch, sources), target_mask (*batch, targets), True = valid -> the mean or sum over the
        batch, or (*batch,).

    Reference:
        Yu et al. (2016), "Online Segment to Segment Neural Transduction".
    """
    alignment = AlignmentPosterior.segment_to_segment(
        words, scores, source_mask=source_mask, target_mask=target_mask, to_the_end=to_the_end
    )
    return reduce(-alignment.log_likelihood, reduction)


def hard_alignment_loss(
    words: Tensor,
    scores: Tensor,
    *,
    monotonic: bool = True,
    source_mask: Tensor | None = None,
    target_mask: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""The negative log-likelihood of the target, where each word attends to one source position.

    .. math:: \ell = -\log \sum_{a} \prod_t p(y_t \mid a_t)\, p(a_t \mid a_{t-1}), \qquad
        p(a_t = j \mid a_{t-1} = k) = \frac{[j \ge k] \exp s_{tj}}{\sum_{j' \ge k} \exp s_{tj'}}

    Without `monotonic` there is no condition on a_{t-1}: each p(y_t) is an independent sum.
    `AlignmentPosterior.hard_monotonic` and `AlignmentPosterior.hard` give the posterior alignment with it.

    Shapes:
        words (*batch, targets, sources): log p(y_t | a_t) of the target words only; scores of the same
        shape; source_mask (*batch, sources), target_mask (*batch, targets), True = valid -> the mean or sum over the
        batch, or (*batch,).

    Reference:
        Wu et al. (2018), "Hard Non-Monotonic Attention for Character-Level Transduction"; Wu and Cotterell (2019),
        "Exact Hard Monotonic Attention for Character-Level Transduction", their 0th order.
    """
    kind = AlignmentPosterior.hard_monotonic if monotonic else AlignmentPosterior.hard
    alignment = kind(words, scores, source_mask=source_mask, target_mask=target_mask)
    return reduce(-alignment.log_likelihood, reduction)


def stepwise_alignment_loss(
    words: Tensor,
    moves: Tensor,
    *,
    source_mask: Tensor | None = None,
    target_mask: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""The same with moves that depend on the previous position: first-order monotonic alignment.

    .. math:: p(a_t = k + m \mid a_{t-1} = k) = \operatorname{softmax}(\mu_{tk})_m, \qquad m = 0, \dots, W - 1

    Shapes:
        words (*batch, targets, sources) as above, moves (*batch, targets, sources, W).

    Reference:
        Wu and Cotterell (2019), "Exact Hard Monotonic Attention for Character-Level Transduction", their 1st order.
    """
    alignment = AlignmentPosterior.stepwise_monotonic(words, moves, source_mask=source_mask, target_mask=target_mask)
    return reduce(-alignment.log_likelihood, reduction)
