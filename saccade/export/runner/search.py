"""Beam search over the two graphs of a model that writes texts; a beam of 1 is greedy."""

from typing import NamedTuple

import numpy as np

PAD, BOS, EOS = range(3)


class StepTrail(NamedTuple):
    """What a step leaves behind, for each of its rows."""

    parents: np.ndarray  # of the rows of the next step
    totals: np.ndarray  # the log-probability before the step
    weights: np.ndarray | None
    entries: dict  # for each way to say a word but generating it, the log-probabilities of what it can say


class FoundText(NamedTuple):
    """A hypothesis."""

    finished: bool
    score: float
    log_prob: float
    tokens: list
    weights: list | None = None  # (steps, positions) of each source
    origins: list | None = None  # for each token, its end included: the way, its share of the probability, the position


def search(model, given, limits, size, nbest=1, length_penalty=0.6, coverage_penalty=0.0, prefix=None):
    """The best hypotheses for each source: `FoundText`.

    Args:
        model: with `run`, and `about` with the names of the state.
        given: what the encoder takes.
        limits: the most tokens for each source.
        size: hypotheses kept for each source.
        nbest: how many are returned for each.
        length_penalty, coverage_penalty: as in the options of a prediction.
        prefix: the tokens that each text begins with, if any.
    """

    def normalised(totals, steps):
        return totals / ((5 + steps) / 6) ** length_penalty

    def score(total, steps, seen, row):
        if not coverage_penalty or seen is None:
            return normalised(total, steps)
        terms = np.log(np.clip(seen[row], 1e-6, 1.0))[mask[owners[row]]]
        return normalised(total, steps) + coverage_penalty * float(terms.sum())

    known = out = model.run("encoder", given)
    mask, state = out["mask"], {name: out[name] for name in model.about["state"]}
    sources, owners, step, trail = np.arange(len(mask)), np.arange(len(mask)), 0, []  # of active ones, and of rows
    best, counts = np.full((len(mask), nbest), -np.inf, dtype=np.float32), np.zeros(len(mask), dtype=int)
    totals, past = np.zeros((len(mask), 1), dtype=np.float32), np.zeros((len(mask), 0), dtype=np.int64)
    ended, covered = [[] for _ in mask], None
    while True:
        active, width = totals.shape
        look = out.get("weights")
        seen = look if covered is None else covered + look
        values, tokens = likeliest(out["log_probs"], 2 * size, prefix, owners, step)
        each = tokens.shape[1]
        values, tokens = (values + totals.reshape(-1, 1)).reshape(active, -1), tokens.reshape(active, -1)
        order = np.argsort(-values, axis=1, kind="stable")[:, : 2 * size]
        values, tokens = np.take_along_axis(values, order, 1), np.take_along_axis(tokens, order, 1)
        rows = order // each + np.arange(active)[:, None] * width
        ends = (tokens == EOS) & (values > -np.inf)
        ends[:, size:] = False
        for place, rank in zip(*ends.nonzero()):
            row, total = rows[place, rank], float(values[place, rank])
            found = score(total, step + 1, seen, row)
            ended[sources[place]].append((True, found, total, past[row], (step, row)))
            best[place] = np.sort(np.append(best[place], np.float32(found)))[:0:-1]
        counts = counts + ends.sum(1)
        grown = np.where(tokens == EOS, -np.inf, values)
        order = np.argsort(-grown, axis=1, kind="stable")[:, :size]
        grown = np.take_along_axis(grown, order, 1)
        stopped, enough = limits <= step, counts >= size
        attainable = normalised(grown[:, 0], np.where(enough, step + 2, limits + 1))
        attainable = np.where(enough & (size == 1), -np.inf, attainable)
        done = stopped | (best[:, -1] >= attainable) | (grown[:, 0] == -np.inf)
        for place in np.flatnonzero(stopped & (counts < nbest)):
            for row in place * width + np.flatnonzero(totals[place] > -np.inf):
                total, before = (
                    float(totals[place, row - place * width]),
                    (step - 1, trail[-1].parents[row] if trail else 0),
                )
                ended[sources[place]].append((False, score(total, step, covered, row), total, past[row], before))
        going = np.flatnonzero(~done)
        parents = np.take_along_axis(rows, order, 1)[going].reshape(-1)
        entries = {way: out[f"{way}_log_probs"] for way in model.about["ways"]}
        trail.append(StepTrail(parents, totals.reshape(-1), look, entries))
        if not len(going):
            break
        written = np.take_along_axis(tokens, order, 1)[going].reshape(-1)
        moved = len(going) < active or grown.shape[1] != width
        for name, value in state.items():  # what belongs to a whole source moves only if the sources do
            if moved or name in model.about["changed"]:
                state[name] = out.get(f"next_{name}", value)[parents]
        owners, past = owners[parents], np.concatenate([past[parents], written[:, None]], axis=1)
        covered = seen[parents] if coverage_penalty and seen is not None else None
        totals, sources, limits, best, counts = (e[going] for e in (grown, sources, limits, best, counts))
        out = model.run("decoder", {**state, "tokens": written})
        step += 1
    answers = []
    for number, several in enumerate(ended):
        chosen = sorted(several, key=lambda entry: entry[:2], reverse=True)[:nbest]
        answers.append([followed(trail, known, number, *entry) for entry in chosen])
    return answers


def followed(trail, known, number, finished, score, log_prob, tokens, last):
    """The hypothesis of a source that ended in this step and row."""
    rows, (step, row) = [], last
    while step >= 0:
        rows.append(row)
        step, row = step - 1, trail[step - 1].parents[row] if step else 0
    rows, tokens = rows[::-1], tokens.tolist()
    looked = [trace.weights[row] for trace, row in zip(trail, rows) if trace.weights is not None]
    weights = split_by_source(np.array(looked), known, number) if looked else None
    ways = [way for trace in trail[:1] for way in trace.entries]
    words = {way: known[f"{way}_words"][number] for way in ways}
    after = [*(trace.totals[row] for trace, row in zip(trail[1:], rows[1:])), log_prob]
    origins = [
        origin(token, total - trace.totals[row], {way: trace.entries[way][row] for way in ways}, words, known["mask"])
        for token, total, trace, row in zip([*tokens, *[EOS] * finished], after, trail, rows)
    ]
    return FoundText(finished, score, log_prob, tokens, weights, origins if ways else None)


def origin(token, log_prob, entries, words, mask):
    """The way that contributed most to a token, its share of the probability, and the position that it used, if any."""
    shares, places = {}, {}
    for way, log_probs in entries.items():
        own = np.where(words[way] == token, log_probs, -np.inf)
        shares[way] = min(1.0, float(np.exp(own - log_prob).sum()))
        places[way] = int(own.argmax()) // (len(own) // mask.shape[1]) if own.max(initial=-np.inf) > -1e29 else None
    shares = {"generate": max(0.0, 1.0 - sum(shares.values())), **shares}
    best = max(shares, key=shares.get)
    return best, shares[best], places.get(best)


def likeliest(log_probs, count, prefix, owners, step):
    """The log-probabilities of the likeliest tokens of each row, and the tokens; never padding or the start."""
    log_probs[:, [PAD, BOS]] = -np.inf
    for row, owner in enumerate(owners if prefix else ()):
        if step < len(prefix[owner]):
            kept = log_probs[row, prefix[owner][step]]
            log_probs[row], log_probs[row, prefix[owner][step]] = -np.inf, kept
    first = max(0, log_probs.shape[1] - count)
    tokens = np.sort(np.argpartition(log_probs, first)[:, first:], axis=1)
    return np.take_along_axis(log_probs, tokens, 1), tokens


def split_by_source(weights, known, number):
    """The weights as (steps, positions) of each source, without padding.

    What belongs to all of a source is spread evenly over it: its owner is the number of the source and of all sources.
    """
    real = known["mask"][number]
    if "owner" not in known:
        return [weights[:, real]]
    weights, owner, place = weights[:, real], known["owner"][number, real], known["place"][number, real]
    parts = [np.zeros((len(weights), length), dtype=weights.dtype) for length in known["lengths"][number]]
    for source, part in enumerate(parts):
        whole = weights[:, owner == len(parts) + source].sum(1, keepdims=True)
        np.add.at(part, (slice(None), place[owner == source]), weights[:, owner == source])
        part += whole / max(1, part.shape[1])
    return parts
