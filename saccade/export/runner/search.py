"""Beam search over the two graphs of a model that writes texts; a beam of 1 is greedy."""

import numpy as np

PAD, BOS, EOS = range(3)


def search(model, given, limits, size, nbest=1, length_penalty=0.6, coverage_penalty=0.0, prefix=None):
    """The best hypotheses for each source: (finished, score, log-probability, tokens, weights for each source).

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
                total, before = float(totals[place, row - place * width]), (step - 1, trail[-1][0][row] if trail else 0)
                ended[sources[place]].append((False, score(total, step, covered, row), total, past[row], before))
        going = np.flatnonzero(~done)
        parents = np.take_along_axis(rows, order, 1)[going].reshape(-1)
        trail.append((parents, look))
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
        split = [split_by_source(looked(trail, *entry[4]), known, number) for entry in chosen]
        answers.append([(*entry[:3], entry[3].tolist(), weights) for entry, weights in zip(chosen, split)])
    return answers


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


def looked(trail, step, row):
    """(steps, positions) of a hypothesis that ended in this row; None without attention."""
    found = []
    while step >= 0 and trail[step][1] is not None:
        found.append(trail[step][1][row])
        step, row = step - 1, trail[step - 1][0][row] if step else 0
    return np.array(found[::-1]) if found else None


def split_by_source(weights, known, number):
    """The weights as (steps, positions) of each source, without padding; None without attention.

    What belongs to all of a source is spread evenly over it: its owner is the number of the source and of all sources.
    """
    real = known["mask"][number]
    if weights is None or "owner" not in known:
        return None if weights is None else [weights[:, real]]
    weights, owner, place = weights[:, real], known["owner"][number, real], known["place"][number, real]
    parts = [np.zeros((len(weights), length), dtype=weights.dtype) for length in known["lengths"][number]]
    for source, part in enumerate(parts):
        whole = weights[:, owner == len(parts) + source].sum(1, keepdims=True)
        np.add.at(part, (slice(None), place[owner == source]), weights[:, owner == source])
        part += whole / max(1, part.shape[1])
    return parts
