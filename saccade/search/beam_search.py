"""Beam search."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any, Unpack

import torch
from torch import Tensor

from saccade.search.constraints import IMPOSSIBLE, Past, Rules, Wishes
from saccade.search.hypothesis import Harvest, Hypothesis, Searchable, Trail, limits
from saccade.search.penalties import Penalties


@torch.no_grad()
def beam(
    model: Searchable,
    encoded: Any,
    *,
    max_length: int | Sequence[int] | Tensor,
    size: int = 5,
    nbest: int = 1,
    length_penalty: float = 0.6,
    coverage_penalty: float = 0.0,
    weights: bool = True,
    bos: int = 1,
    eos: int = 2,
    pad: int = 0,
    **wishes: Unpack[Wishes],
) -> list[list[Hypothesis]]:
    """Finds the best hypotheses of each sentence, best first, keeping `size` unfinished hypotheses at each step.

    A hypothesis is finished when its end token is among the best `size` continuations. A sentence is done when no
    unfinished hypothesis can still beat the `nbest` finished ones, or, once `size` are finished, when none would beat
    them by ending next. Finished sentences leave the batch, and sentences do not influence each other. Scores are those
    of the model: tokens that a constraint forbids are excluded, without renormalising the rest.

    Args:
        model: the model to search with; in evaluation mode, if it has dropout.
        encoded: the encoded sources; its `mask` (batch, keys) gives the number of sentences.
        max_length: the maximum number of tokens, not counting the end token; one for all sentences or one for each.
        size: how many unfinished hypotheses to keep.
        nbest: how many to return for each sentence, at most `size`; fewer if fewer are found.
        length_penalty: alpha of `Penalties`; 0 compares plain log-probabilities.
        coverage_penalty: beta of `Penalties`; 0 disables it.
        weights: whether hypotheses include their attention weights.
        bos, eos, pad: the special ids; start and padding tokens are never generated.
        wishes: constraints on the output; see `saccade.search.constraints.Rules`: min_length, no_repeat_ngram,
            forbidden, forced, prefix, constraints.
    """
    if not 1 <= nbest <= size:
        raise ValueError(f"nbest must be between 1 and size={size}, got {nbest}.")
    penalties = Penalties(length_penalty, coverage_penalty)
    penalties.check()
    batch, device = encoded.mask.shape[0], encoded.mask.device
    rules = Rules(encoded.mask, eos=eos, never=(bos, pad), **wishes)
    trail = Trail()
    harvest = Harvest(trail)
    if not batch:
        return []

    # For each active sentence (active,): its number, its limit, its best finished scores and their count.
    sentences = torch.arange(batch, device=device)
    limit = limits(max_length, batch, device)
    best = torch.full((batch, nbest), IMPOSSIBLE, device=device)
    finished = torch.zeros(batch, dtype=torch.long, device=device)
    # For each hypothesis (active, width): its log-probability; everything else is in model rows (active * width).
    totals = torch.zeros(batch, 1, device=device)
    past = torch.zeros(batch, 0, dtype=torch.long, device=device)
    tokens = torch.full((batch,), bos, device=device)
    mask = encoded.mask
    coverage: Tensor | None = None
    state = model.begin(encoded)

    for step in count():
        active, width = totals.shape
        given = model.step(tokens, state)
        looked = given.weights if weights or coverage_penalty else None
        if weights:
            trail.looked(looked)
        covered = looked if coverage is None or looked is None else coverage + looked

        # At most `size` of the best 2 * size continuations are end tokens (one per row), so `size` others remain.
        values, ids = rules.best(given, Past(past, sentences.repeat_interleave(width)), 2 * size)
        values = (values + totals.view(-1, 1)).view(active, -1)
        values, places = values.topk(min(2 * size, values.shape[1]))
        rows = places // ids.shape[1] + torch.arange(active, device=device)[:, None] * width
        written = ids.view(active, -1).gather(1, places)

        ends = (written == eos) & (values > IMPOSSIBLE)
        ends[:, size:] = False
        sentence, place = ends.nonzero(as_tuple=True)
        if len(sentence):
            row, total = rows[sentence, place], values[sentence, place]
            score = penalties.score(total, step + 1, None if covered is None else covered[row], mask[row])
            harvest.add(
                sentences=sentences[sentence],
                rows=row,
                step=step,
                tokens=past[row],
                log_probs=total,
                scores=score,
                finished=True,
            )
            ranked = torch.full_like(values, IMPOSSIBLE).masked_scatter_(ends, score)
            best = torch.cat([best, ranked], dim=1).topk(nbest).values
            finished = finished + ends.sum(dim=1)

        grown, order = values.masked_fill(written == eos, IMPOSSIBLE).topk(min(size, values.shape[1]))
        # Log-probabilities only fall, and the divisor is at most that of the longest output: this is an upper bound.
        attainable = penalties.normalise(grown[:, 0], limit + 1)
        # Once enough are finished, only wait for a hypothesis that would be better if it ended next; never when greedy.
        in_sight = penalties.normalise(grown[:, 0], step + 2) if size > 1 else totals.new_tensor(IMPOSSIBLE)
        attainable = torch.where(finished >= size, in_sight, attainable)
        stopped = limit <= step
        done = stopped | (best[:, -1] >= attainable) | (grown[:, 0] == IMPOSSIBLE)

        cut = (stopped & (finished < nbest))[:, None] & (totals > IMPOSSIBLE)
        row = cut.view(-1).nonzero().squeeze(1)
        if len(row):
            total = totals.view(-1)[row]
            harvest.add(
                sentences=sentences[row // width],
                rows=trail.before(row),
                step=step - 1,
                tokens=past[row],
                log_probs=total,
                scores=penalties.score(total, step, None if coverage is None else coverage[row], mask[row]),
                finished=False,
            )

        if done.all():
            return _checked(harvest.best(batch, nbest))
        going = (~done).nonzero().squeeze(1)
        parents = rows.gather(1, order)[going].flatten()
        same = len(going) == active and grown.shape[1] == width
        state = (model.reorder if same else model.select)(given.state, parents)
        trail.continued(parents)
        tokens = written.gather(1, order)[going].flatten()
        past = torch.cat([past[parents], tokens[:, None]], dim=1)
        mask = mask if same else mask[parents]
        coverage = None if covered is None or not coverage_penalty else covered[parents]
        totals = grown[going]
        sentences, limit, best, finished = sentences[going], limit[going], best[going], finished[going]
    raise AssertionError("A search ends at the maximum length.")


def _checked(found: list[list[Hypothesis]]) -> list[list[Hypothesis]]:
    for number, hypotheses in enumerate(found):
        if not hypotheses:
            raise ValueError(
                f"No output is possible for sentence {number}: the model gives all allowed tokens probability 0, "
                "or its logits are NaN."
            )
    return found
