"""The loop shared by greedy search and sampling: one hypothesis per sentence, one token per step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Unpack

import torch
from torch import Tensor

from saccade.search.constraints import Past, Rules, Stepped, Wishes
from saccade.search.hypothesis import Harvest, Hypothesis, Searchable, Trail, limits
from saccade.search.penalties import Penalties


@torch.no_grad()
def walk(
    model: Searchable,
    encoded: Any,
    *,
    choose: Callable[[Stepped, Past, Rules], tuple[Tensor, Tensor]],
    max_length: int | Sequence[int] | Tensor,
    length_penalty: float,
    coverage_penalty: float,
    weights: bool,
    bos: int,
    eos: int,
    pad: int,
    **wishes: Unpack[Wishes],
) -> list[Hypothesis]:
    """Generates one hypothesis per sentence; a sentence leaves the batch when it ends.

    Args:
        choose: returns the next tokens (rows,) and their log-probabilities, given a step of the model.

    For the other arguments see `saccade.search.beam`; the penalties affect only the score.
    """
    penalties = Penalties(length_penalty, coverage_penalty)
    penalties.check()
    rules = Rules(encoded.mask, eos=eos, never=(bos, pad), **wishes)
    batch, device = encoded.mask.shape[0], encoded.mask.device
    trail = Trail()
    harvest = Harvest(trail)
    if not batch:
        return []
    sentences = torch.arange(batch, device=device)
    limit = limits(max_length, batch, device)
    totals = torch.zeros(batch, device=device)
    past = torch.zeros(batch, 0, dtype=torch.long, device=device)
    tokens = torch.full((batch,), bos, device=device)
    coverage: Tensor | None = None
    mask = encoded.mask
    state = model.begin(encoded)

    for step in count():
        given = model.step(tokens, state)
        looked = given.weights if weights or penalties.coverage else None
        if weights:
            trail.looked(looked)
        covered = looked if coverage is None or looked is None else coverage + looked
        tokens, log_probs = choose(given, Past(past, sentences), rules)
        grown = totals + log_probs

        ended = tokens == eos
        cut = ~ended & (limit <= step)
        for leaving, finished in ((ended, True), (cut, False)):
            row = leaving.nonzero().squeeze(1)
            total, seen = (grown[row], covered) if finished else (totals[row], coverage)
            harvest.add(
                sentences=sentences[row],
                rows=row if finished else trail.before(row),
                step=step if finished else step - 1,
                tokens=past[row],
                log_probs=total,
                scores=penalties.score(total, step + finished, None if seen is None else seen[row], mask[row]),
                finished=finished,
            )

        going = (~ended & ~cut).nonzero().squeeze(1)
        if not len(going):
            return [best for (best,) in harvest.best(batch, 1)]
        state = given.state if len(going) == len(tokens) else model.select(given.state, going)
        trail.continued(going)
        tokens = tokens[going]
        past = torch.cat([past[going], tokens[:, None]], dim=1)
        coverage = covered[going] if covered is not None and penalties.coverage else None
        totals, sentences, limit, mask = grown[going], sentences[going], limit[going], mask[going]
    raise AssertionError("A walk ends at the maximum length.")
