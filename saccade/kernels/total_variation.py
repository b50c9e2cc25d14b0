"""The proximal operator of total variation, which fuses neighbours."""

from typing import Any

import torch
from torch import Tensor

from saccade.kernels import native
from saccade.kernels.modes import transforming


def fuse(scores: Tensor, mask: Tensor | None, strength: float) -> Tensor:
    r"""The sequence nearest to each row, with a penalty on jumps between neighbours.

    .. math:: \arg\min_x \tfrac12 \lVert x - s \rVert^2 + \lambda \sum_j |x_{j+1} - x_j|

    Masked elements are removed from the row, so that the remaining elements are neighbours. Their entries in the result
    are meaningless and get no gradient. Scores are float32 or float64.
    """
    if transforming():
        # The mean of the scores over each run, with the runs held constant, in fully differentiable operations.
        runs: Tensor = total_variation_prox(scores.detach(), mask, strength)
        return runs + average_runs(scores - scores.detach(), runs, mask)
    fused: Tensor = total_variation_prox(scores, mask, strength)
    return fused


@torch.library.custom_op("saccade::total_variation_prox", mutates_args=())
def total_variation_prox(scores: Tensor, mask: Tensor | None, strength: float) -> Tensor:
    """`fuse` as an operator: its loops depend on the data, which compiled code cannot trace."""
    keep = None if mask is None else mask.expand(scores.shape).contiguous()
    if not native.usable(scores):
        return total_variation_prox_reference(scores, keep, strength)
    out = scores.new_empty(scores.shape)
    results = native.run(
        native.function("total_variation_prox", scores.dtype),
        scores.contiguous(),
        keep,
        out,
        float(strength),
        scores.shape[-1],
        items=scores.shape[:-1].numel(),
        operations=30 * scores.numel(),
    )
    if min(results) < 0:
        raise MemoryError(f"out of memory for rows of size {scores.shape[-1]}.")
    return out


def total_variation_prox_reference(scores: Tensor, mask: Tensor | None, strength: float) -> Tensor:
    """The same by the taut-string algorithm, row by row."""
    rows = scores.detach().cpu().double().reshape(scores.shape[:-1].numel(), scores.shape[-1])
    keep = torch.ones_like(rows, dtype=torch.bool) if mask is None else mask.cpu().reshape(rows.shape)
    out = torch.zeros_like(rows)
    for row, kept, result in zip(rows, keep, out, strict=True):
        fused = row.new_tensor(taut_string(row[kept].tolist(), strength))
        if fused.numel():
            result.copy_(fused[(kept.cumsum(0) - 1).clamp(min=0)])
    return out.view(scores.shape).to(scores)


def taut_string(row: list[float], strength: float) -> list[float]:
    """The slopes of the shortest string through a tube of radius `strength` around the running sums of the row.

    From each bend the string runs straight as long as some slope keeps it within the tube; when none does, it bends at
    the tightest point so far.
    """
    sums = [0.0]
    for value in row:
        sums.append(sums[-1] + value)
    radius = [strength] * len(row) + [0.0]  # the string is fixed at the end, and starts at zero
    slopes: list[float] = []
    start, height = 0, 0.0
    while start < len(row):
        lowest, low_at, highest, high_at = -float("inf"), start, float("inf"), start
        for end in range(start + 1, len(row) + 1):
            rise, room = sums[end] - height, radius[end]
            if (rise - room) / (end - start) > highest:
                bend, slope, height = high_at, highest, sums[high_at] + strength
                break
            if (rise + room) / (end - start) < lowest:
                bend, slope, height = low_at, lowest, sums[low_at] - strength
                break
            if (rise + room) / (end - start) <= highest:
                highest, high_at = (rise + room) / (end - start), end
            if (rise - room) / (end - start) >= lowest:
                lowest, low_at = (rise - room) / (end - start), end
        else:
            bend, slope = len(row), lowest
        slopes += [slope] * (bend - start)
        start = bend
    return slopes


def average_runs(grad: Tensor, fused: Tensor, mask: Tensor | None) -> Tensor:
    """The mean of the gradient over each run of equal neighbours: the Jacobian of `fuse`, which is symmetric."""
    if fused.shape[-1] == 0:
        return grad
    counted = torch.ones_like(grad) if mask is None else mask.expand(grad.shape).to(grad.dtype)
    run = torch.nn.functional.pad(fused[..., 1:] != fused[..., :-1], (1, 0)).cumsum(-1)
    sums = torch.zeros_like(grad).scatter_add(-1, run, grad * counted)
    sizes = torch.zeros_like(grad).scatter_add(-1, run, counted)
    return (sums / sizes.clamp(min=1.0)).gather(-1, run) * counted


@total_variation_prox.register_fake
def _(scores: Tensor, mask: Tensor | None, strength: float) -> Tensor:
    return scores.new_empty(scores.shape)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(output, inputs[1])


def _derive(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
    fused, mask = ctx.saved_tensors
    return average_runs(grad, fused.detach(), mask), None, None


total_variation_prox.register_autograd(_derive, setup_context=_save)


@total_variation_prox.register_vmap
def _(
    info: Any, in_dims: tuple[int | None, ...], scores: Tensor, mask: Tensor | None, strength: float
) -> tuple[Tensor, int]:
    """Rows are independent, so this adds a batch axis in front."""
    scores = scores.expand(info.batch_size, *scores.shape) if in_dims[0] is None else scores.movedim(in_dims[0], 0)
    if mask is not None and in_dims[1] is not None:
        mask = mask.movedim(in_dims[1], 0)
        mask = mask.reshape(mask.shape[0], *(1,) * (scores.dim() - mask.dim()), *mask.shape[1:])
    return total_variation_prox(scores, mask, strength), 0
