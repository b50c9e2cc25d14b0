"""The score-function (REINFORCE) loss of hard attention."""

import torch
from torch import Tensor

from saccade.distributions import Distribution
from saccade.losses.base import Reduction, full, reduce
from saccade.masks import Mask


def reinforce_loss(
    selection: Distribution,
    log_likelihood: Tensor,
    baseline: Tensor | float | None = None,
    *,
    reward_weight: float = 1.0,
    entropy_weight: float = 0.0,
    decay: float = 0.9,
    step_mask: Tensor | Mask | None = None,
    reduction: Reduction = "mean",
) -> tuple[Tensor, Tensor]:
    r"""A loss whose gradient is the score-function estimate for hard attention, and the next baseline.

    .. math:: -\frac{\partial \ell}{\partial \theta} = \frac{\partial \log p(y \mid s)}{\partial \theta}
        + \lambda_r (\log p(y \mid s) - b) \frac{\partial \log p(s \mid a)}{\partial \theta}
        + \lambda_e \frac{\partial H(s)}{\partial \theta}, \qquad
        b \leftarrow 0.9\, b + 0.1 \log p(y \mid s)

    s is `selection.draw`, which the `Sample` aggregation reads. With \lambda_r = 1 and \lambda_e = 0 the estimate is
    unbiased for the gradient of the bound \sum_s p(s) \log p(y \mid s) <= \log p(y); the paper's code uses 0.1 and
    0.002. A step that reads the expectation instead of a sample has fractions in s: its gradient comes through
    log p(y | s), and it adds no score-function term.

    Shapes:
        a selection over (*batch, steps, keys), or one structure for all steps; log_likelihood (*batch,) of each
        sentence given its samples, baseline a number, step_mask (*batch, steps), True = valid -> the loss, the mean
        over the batch of the sums over valid steps (or their sum, or each of them), and the next baseline, a number
        without gradient.

    Reference:
        Xu et al. (2015), arXiv:1502.03044, section 4.1.

    Args:
        selection: the selection of the reading; in training its draws are samples.
        log_likelihood: log p(y | s), with its graph.
        baseline: the one returned by the previous call; None for the first batch, which uses its own mean.
        reward_weight: lambda_r.
        entropy_weight: lambda_e.
        decay: how much of the old baseline to keep.
        reduction: "mean", "sum" or "none", over the batch.
    """
    draw = selection.draw
    if log_likelihood.shape != draw.shape[:-2]:
        raise ValueError(
            f"log_likelihood must have one number per sentence, with the batch shape {tuple(draw.shape[:-2])} of the "
            f"selection, got {tuple(log_likelihood.shape)}."
        )
    steps = full(step_mask, draw.shape[:-1], "step_mask", "(*batch, steps)", draw.device)
    reward = log_likelihood.detach()
    mean_reward = reward.mean()
    old = mean_reward if baseline is None else torch.as_tensor(baseline).detach().to(reward)
    is_pick = ((draw == 0) | (draw == 1)).all(-1)
    if selection.joint:  # one structure, picked as a whole if any step is valid
        is_pick, steps = is_pick.all(-1, keepdim=True), steps.any(-1, keepdim=True)

    def of_each(figure: Tensor) -> Tensor:
        return figure.unsqueeze(-1) if selection.joint else figure

    # The log-probability of a row that is not a sample is -inf: exclude it and its gradient.
    log_prob = torch.where(is_pick & steps, of_each(selection.log_prob(draw.detach())), 0.0).sum(-1)
    gain = log_likelihood + reward_weight * (reward - old) * log_prob
    if entropy_weight:
        gain = gain + entropy_weight * torch.where(steps, of_each(selection.entropy()), 0.0).sum(-1)
    return reduce(-gain, reduction), decay * old + (1.0 - decay) * mean_reward
