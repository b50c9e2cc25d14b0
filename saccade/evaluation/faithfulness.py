"""Faithfulness: whether a model depends on what it attends to."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from saccade.checks import check_count
from saccade.data.special import BOS, PAD
from saccade.decoders import shift_right
from saccade.evaluation.correlation import kendall, spearman
from saccade.interpretation.attribution import gradient_times_input
from saccade.interpretation.recording import record
from saccade.interpretation.recording.interventions import rescaled
from saccade.interpretation.source import source_attentions
from saccade.models import EncoderDecoder

Row = Callable[[Tensor, Tensor, int], Tensor]
"""Maps the weights (heads, keys) of one step, the mask of the same shape and the step number to new weights."""


def faithfulness(
    model: EncoderDecoder, pairs: Sequence[tuple[Tensor, ...]], *, share: float = 0.2, draws: int = 5, seed: int = 0
) -> dict[str, float]:
    r"""Tests attention as an explanation, averaged over all target tokens of some pairs.

    Each test changes the attention to the source at a single step, in every layer and head, and compares what the model
    predicts at this step. The top positions are those with the largest reported weights.

    | figure | what is done and measured |
    | --- | --- |
    | comprehensiveness | the top `share` of positions is erased: loss in p(y) |
    | sufficiency | all other positions are erased: loss in p(y) |
    | random_... | the same with as many random positions, as a baseline |
    | uniform | all positions get the same weight: total variation distance of p |
    | permutation | weights are shuffled: total variation distance of p |
    | ..._flips | percentage of steps whose most likely token changes |
    | gradient_kendall, gradient_spearman | rank correlation of weights and gradient times input |

    After an erasure the remaining weights are rescaled to the original total. `saccade.evaluation.MEANINGS` explains
    each metric.

    Reference:
        DeYoung et al. (2020), arXiv:1911.03429 (comprehensiveness, sufficiency); Jain & Wallace (2019),
        arXiv:1902.10186 (permutation, gradients); Wiegreffe & Pinter (2019), arXiv:1908.04626 (uniform weights).

    Args:
        model: an encoder-decoder with attention, in evaluation mode.
        pairs: source ids (length) and target ids (steps), including the end tokens; for a model that copies, also what
            the source says (length).
        share: the share of positions that count as top positions; at least one position.
        draws: the number of permutations and random erasures to average.
        seed: the seed of these draws.
    """
    if not 0 < share <= 1:
        raise ValueError(f"share must be above 0 and at most 1, got {share}.")
    check_count("draws", draws)
    if not pairs:
        raise ValueError("There are no pairs to test.")
    if model.training:
        raise ValueError("The model is in training mode: call model.eval(), or dropout will count as a change.")
    attentions = source_attentions(model)
    if not attentions:
        raise ValueError(f"{type(model).__name__} has no attention to the source.")
    generator = torch.Generator().manual_seed(seed)
    sums: dict[str, list[float]] = {}
    for source, target, *words in pairs:
        for name, values in _of_pair(model, source, target, words, share, draws, generator).items():
            sums.setdefault(name, []).extend(value for value in values.flatten().tolist() if not math.isnan(value))
    return {name: sum(values) / len(values) if values else math.nan for name, values in sums.items()}


def _of_pair(
    model: EncoderDecoder,
    source: Tensor,
    target: Tensor,
    words: list[Tensor],
    share: float,
    draws: int,
    generator: torch.Generator,
) -> dict[str, Tensor]:
    """The metrics of each step."""
    said = {"words": words[0][None]} if words else {}
    steps = len(target)
    begun = shift_right(target, BOS)
    mask = source != PAD
    places = mask.nonzero().squeeze(-1)
    with torch.no_grad():
        decoded = model(source[None], mask[None], begun[None], **said)
        weights = decoded.weights[0]
        before = model.head.logits(decoded.features[0]).float().softmax(dim=-1)
    given = before.gather(1, target[:, None]).squeeze(1)
    count = min(max(1, math.ceil(share * len(places))), len(places))
    most = weights.topk(count, dim=-1).indices
    attributed = gradient_times_input(model, source, mask, target, begun, *words)

    def lost(chosen: Tensor, erase: bool) -> Tensor:
        marked = torch.zeros(steps, len(source), dtype=torch.bool).scatter(1, chosen.cpu(), True).to(source.device)
        after = _ask(model, source, mask, begun, said, lambda row, _, step: _keep(row, marked[step] != erase))
        left: Tensor = given - after.gather(1, target[:, None]).squeeze(1)
        return left

    def at_random() -> Tensor:
        order = torch.rand(steps, len(places), generator=generator).argsort(dim=-1)[:, :count]
        return places.cpu()[order]

    random = [at_random() for _ in range(draws)]
    uniform = _ask(model, source, mask, begun, said, lambda row, allowed, _: _flat(row, allowed))
    shuffled = [_ask(model, source, mask, begun, said, _shuffler(generator)) for _ in range(draws)]
    return {
        "comprehensiveness": lost(most, erase=True),
        "random_comprehensiveness": torch.stack([lost(chosen, erase=True) for chosen in random]),
        "sufficiency": lost(most, erase=False),
        "random_sufficiency": torch.stack([lost(chosen, erase=False) for chosen in random]),
        "uniform": _distance(before, uniform),
        "uniform_flips": _flips(before, uniform),
        "permutation": torch.stack([_distance(before, after) for after in shuffled]),
        "permutation_flips": torch.stack([_flips(before, after) for after in shuffled]),
        "gradient_kendall": kendall(weights[:, places], attributed[:, places]),
        "gradient_spearman": spearman(weights[:, places], attributed[:, places]),
    }


@torch.no_grad()
def _ask(
    model: EncoderDecoder, source: Tensor, mask: Tensor, begun: Tensor, said: dict[str, Tensor], row: Row
) -> Tensor:
    """What the model predicts at each step if only the attention of this step is changed: (steps, vocab).

    The batch has one copy of the pair per step, in which that step is changed.
    """
    steps = len(begun)

    def change(weights: Tensor, allowed: Tensor, asked: range) -> Tensor:
        changed = weights.clone()
        for query, step in enumerate(asked):
            changed[step, ..., query, :] = row(weights[step, ..., query, :], allowed[step, ..., query, :], step)
        return changed

    with record(model, keep=[], change=dict.fromkeys(source_attentions(model), change)):
        words = {name: each.expand(steps, -1) for name, each in said.items()}
        decoded = model(source.expand(steps, -1), mask.expand(steps, -1), begun.expand(steps, -1), **words)
    each = torch.arange(steps, device=source.device)
    probabilities: Tensor = model.head.logits(decoded.features[each, each]).float().softmax(dim=-1)
    return probabilities


def _keep(row: Tensor, kept: Tensor) -> Tensor:
    """The weights of the kept positions, rescaled to the total of all; zeros if they have none."""
    return rescaled(row * kept[: row.shape[-1]], row)  # decoders may cut off the last keys


def _flat(row: Tensor, allowed: Tensor) -> Tensor:
    places = allowed.sum(dim=-1, keepdim=True).clamp(min=1)
    return row.sum(dim=-1, keepdim=True) * allowed / places


def _shuffler(generator: torch.Generator) -> Row:
    """One order of the positions per step, the same in every layer and head."""
    orders: dict[int, Tensor] = {}

    def shuffle(row: Tensor, allowed: Tensor, step: int) -> Tensor:
        places = allowed.reshape(-1, allowed.shape[-1])[0].nonzero().squeeze(-1)
        if step not in orders:
            orders[step] = torch.randperm(len(places), generator=generator).to(row.device)
        changed = row.clone()
        changed[..., places] = row[..., places[orders[step]]]
        return changed

    return shuffle


def _distance(before: Tensor, after: Tensor) -> Tensor:
    """Total variation distance, from 0 to 1."""
    return (before - after).abs().sum(dim=-1) / 2


def _flips(before: Tensor, after: Tensor) -> Tensor:
    return 100.0 * (before.argmax(dim=-1) != after.argmax(dim=-1)).float()
