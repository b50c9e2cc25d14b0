"""Every structure against the list of all of them: all methods, lengths 0 to 7 as far as there are not too many."""

import itertools

import pytest
import torch

from saccade.distributions import AlignmentPosterior, Chain, Segmentation, SegmentSet, Subset, Tree
from tests.oracles.structures import (
    Enumerated,
    chain_weight,
    segmentations,
    state_sequences,
    tree_indicator,
    trees,
)

SAMPLES = 3000


def random(*shape, seed=0, spread=1.5):
    generator = torch.Generator().manual_seed(seed + 31 * sum(shape))
    return spread * torch.randn(*shape, generator=generator, dtype=torch.float64)


def random_mask(size, seed):
    return torch.rand(size, generator=torch.Generator().manual_seed(seed)) > 0.35 if seed else torch.ones(size) > 0


def check(distribution, expected: Enumerated, samples=SAMPLES):
    """All methods; the outcomes have the shape of z, one structure, no batch."""
    log_probs = expected.weights.log_softmax(0)
    some = torch.arange(0, len(log_probs), max(1, len(log_probs) // 500))
    torch.testing.assert_close(distribution.log_partition.squeeze(), expected.log_partition)
    torch.testing.assert_close(distribution.marginals.reshape(expected.marginals.shape), expected.marginals)
    torch.testing.assert_close(distribution.entropy().squeeze(), expected.entropy)
    z = expected.outcomes.reshape(len(expected.outcomes), *distribution.marginals.shape)[some]
    torch.testing.assert_close(distribution.log_prob(z).reshape(some.shape), log_probs[some])
    torch.testing.assert_close(distribution.log_prob(distribution.mode).squeeze(), log_probs.max())
    torch.manual_seed(0)
    drawn = distribution.sample(samples)
    assert (distribution.log_prob(drawn) > -torch.inf).all()
    assert (distribution.log_prob(distribution.sample()) > -torch.inf).all()
    p = distribution.marginals
    assert ((drawn.mean(0) - p).abs() <= 5 * (p * (1 - p) / samples).sqrt() + 10 / samples).all()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("length", range(8))
def test_segmentation(length, seed):
    scores, transitions, mask = random(1, length), random(2, 2, seed=5), random_mask(length, seed)
    unary = torch.stack([torch.zeros_like(scores[0]), scores[0]], dim=-1)
    outcomes = [z for z in state_sequences(length, 2) if all(mask[j] or not z[j] for j in range(length))]
    edges = transitions.expand(max(length - 1, 0), 2, 2)
    weights = torch.stack([chain_weight(z, unary, edges, mask) for z in outcomes])
    distribution = Segmentation.of(scores, transitions, mask.expand(1, length))
    check(distribution, Enumerated(torch.tensor(outcomes, dtype=torch.float64), weights))
    z = torch.tensor(outcomes)
    if length > 1:
        for i in range(1, length):
            kept = [j for j in range(i) if mask[j]]
            if not mask[i] or not kept:
                assert (distribution.edges[0, i - 1] == 0).all()
                continue
            for a, b in itertools.product((0, 1), repeat=2):
                both = (z[:, kept[-1]] == a) & (z[:, i] == b)
                torch.testing.assert_close(distribution.edges[0, i - 1, a, b], weights.softmax(0)[both].sum())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("length", [0, 1, 2, 5])
def test_segmentation_with_start_and_stop(length, seed):
    scores, transitions, mask = random(1, length), random(2, 2, seed=5), random_mask(length, seed)
    unary = torch.stack([torch.zeros_like(scores[0]), scores[0]], dim=-1)
    outcomes = [z for z in state_sequences(length, 2) if all(mask[j] or not z[j] for j in range(length))]
    edges = transitions.expand(max(length - 1, 0), 2, 2)
    kept = mask.nonzero().squeeze(-1).tolist()

    def weight(z):
        ends = transitions[:, z[kept[0]]].mean() + transitions[z[kept[-1]]].mean() if kept else 0.0
        return chain_weight(z, unary, edges, mask) + ends

    distribution = Segmentation.of(scores, transitions, mask.expand(1, length), start_and_stop=True)
    expected = Enumerated(torch.tensor(outcomes, dtype=torch.float64), torch.stack([weight(z) for z in outcomes]))
    check(distribution, expected)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("length", "states"), [(0, 3), (1, 1), (1, 5), (2, 3), (3, 5), (4, 3), (5, 2), (6, 3), (7, 3)])
def test_chain(length, states, seed):
    unary, transitions = random(length, states), random(max(length - 1, 0), states, states, seed=3)
    mask = random_mask(length, seed)
    outcomes = [z for z in state_sequences(length, states) if all(mask[j] or not z[j] for j in range(length))]
    z = torch.nn.functional.one_hot(torch.tensor(outcomes, dtype=torch.long), states) * mask.unsqueeze(-1)
    weights = torch.stack([chain_weight(z, unary, transitions, mask) for z in outcomes])
    check(Chain.of(unary, transitions, mask=mask), Enumerated(z.to(torch.float64), weights))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("projective", [True, False])
@pytest.mark.parametrize("size", range(8))
def test_tree(size, projective, single_root, seed):
    scores, present = random(size, size), random_mask(size, seed)
    kept = present.nonzero().squeeze(-1)
    heads = trees(len(kept), projective=projective, single_root=single_root)
    z = torch.zeros(len(heads), size, size, dtype=torch.float64)
    z[:, kept.unsqueeze(-1), kept] = tree_indicator(heads).reshape(len(heads), len(kept), len(kept))
    mask = None if seed == 0 else present.expand(size, size)
    distribution = Tree.of(scores, mask=mask, projective=projective, single_root=single_root)
    check(distribution, Enumerated(z, (z * scores).sum((-1, -2))), samples=1000)


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("projective", [True, False])
def test_tree_with_forbidden_arcs(projective, single_root):
    scores, mask = random(4, 4), random(4, 4, seed=1) > -0.8
    mask.diagonal()[0] = True
    z = tree_indicator(trees(4, projective=projective, single_root=single_root))
    z = z[((z == 0) | mask).all(-1).all(-1)]
    assert len(z) > 2
    check(
        Tree.of(scores, mask=mask, projective=projective, single_root=single_root),
        Enumerated(z, (z * scores).sum((-1, -2))),
    )
    torch.testing.assert_close(
        Tree.of(scores.masked_fill(~mask, -torch.inf), projective=projective, single_root=single_root).marginals,
        Enumerated(z, (z * scores).sum((-1, -2))).marginals,
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [1, 2, 3, 9])
@pytest.mark.parametrize("length", range(8))
def test_subset(length, k, seed):
    scores, mask = random(1, length), random_mask(length, seed)
    allowed = mask.nonzero().squeeze(-1).tolist()
    z = torch.zeros(0, length, dtype=torch.float64)
    for chosen in itertools.combinations(allowed, min(k, len(allowed))):
        row = torch.zeros(1, length, dtype=torch.float64)
        row[0, list(chosen)] = 1
        z = torch.cat([z, row])
    check(Subset.of(scores, k, mask.expand(1, length)), Enumerated(z, (z * scores).sum(-1)))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("longest", [1, 3, 5])
@pytest.mark.parametrize("length", range(8))
def test_segments(length, longest, seed):
    scores, durations, mask = random(1, length), random(longest, seed=2), random_mask(length, seed)
    kept = mask.nonzero().squeeze(-1)
    outcomes, weights = [], []
    # Cut into pieces, the picked ones of at most `longest`; pieces next to each other differ, unpicked ones are single.
    for picked in itertools.product((0, 1), repeat=len(kept)):
        runs = [len(list(run)) for value, run in itertools.groupby(picked) if value]
        if all(run <= longest for run in runs):
            z = torch.zeros(length, dtype=torch.float64)
            z[kept] = torch.tensor(picked, dtype=torch.float64)
            outcomes.append(z)
            weights.append((z * scores[0]).sum() + sum((durations[run - 1] for run in runs), torch.zeros(())))
    z = torch.stack(outcomes)
    check(SegmentSet.of(scores, durations, mask.expand(1, length)), Enumerated(z, torch.stack(weights)))


def test_number_of_segmentations():
    counts = [sum(1 for _ in segmentations(n, 3)) for n in range(7)]
    assert counts == [1, 1, 2, 4, 7, 13, 24]  # tribonacci numbers: the oracle itself


TREE_COUNTS = {
    (True, False): [1, 3, 12, 55, 273, 1428, 7752],
    (True, True): [1, 2, 7, 30, 143, 728, 3876],
    (False, False): [1, 3, 16, 125, 1296, 16807, 262144],
    (False, True): [1, 2, 9, 64, 625, 7776, 117649],
}


@pytest.mark.parametrize(("projective", "single_root"), TREE_COUNTS)
def test_number_of_trees(projective, single_root):
    for n, count in enumerate(TREE_COUNTS[projective, single_root], start=1):
        tree = Tree.of(torch.zeros(n, n, dtype=torch.float64), projective=projective, single_root=single_root)
        torch.testing.assert_close(tree.log_partition.exp().item(), float(count))


def alignment_weight(kind, path, words, scores, moves):
    """log p(y, a) as the papers write it, -inf if impossible."""
    total = sum((words[t, j] for t, j in enumerate(path)), torch.zeros((), dtype=torch.float64))
    before = 0
    for t, j in enumerate(path):
        if kind == "hard":
            total = total + scores[t].log_softmax(0)[j]
            continue
        if j < before:
            return torch.tensor(-torch.inf, dtype=torch.float64)
        if kind == "hard_monotonic":
            total = total + scores[t, before:].log_softmax(0)[j - before]
        elif kind == "segment_to_segment":
            emit = torch.sigmoid(scores[t])
            total = total + emit[j].log() + (1 - emit[before:j]).log().sum()
        else:
            steps = moves[t, before, : min(moves.shape[-1], words.shape[-1] - before)].log_softmax(0)
            if j - before >= len(steps):
                return torch.tensor(-torch.inf, dtype=torch.float64)
            total = total + steps[j - before]
        before = j
    return total


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize(("targets", "sources"), [(0, 3), (1, 1), (1, 5), (3, 4), (4, 3), (4, 7), (7, 4)])
@pytest.mark.parametrize("kind", ["hard", "hard_monotonic", "segment_to_segment", "stepwise_monotonic"])
def test_alignment(kind, targets, sources, padded):
    words, scores, moves = (
        -random(targets, sources).abs(),
        random(targets, sources, seed=1),
        random(targets, sources, 3),
    )
    outcomes, weights = [], []
    if kind == "hard":
        targets = min(targets, 4)  # there are not so many that never go back
        paths = itertools.product(range(sources), repeat=targets)
        words, scores, moves = words[:targets], scores[:targets], moves[:targets]
    else:
        paths = itertools.combinations_with_replacement(range(sources), targets)
    for path in paths:
        weight = alignment_weight(kind, path, words, scores, moves)
        if weight > -torch.inf:
            z = torch.zeros(targets, sources, dtype=torch.float64)
            z[torch.arange(targets), torch.tensor(path, dtype=torch.long)] = 1
            outcomes.append(z)
            weights.append(weight)
    z, weights = torch.stack(outcomes), torch.stack(weights)
    masks = {}
    second = moves if kind == "stepwise_monotonic" else scores
    if padded:  # garbage at the end of both
        grow = torch.nn.functional.pad
        words, z = grow(words, (0, 2, 0, 1), value=77.0), grow(z, (0, 2, 0, 1))
        second = grow(second, (0, 0, 0, 2, 0, 1) if second.dim() == 3 else (0, 2, 0, 1), value=77.0)
        masks["source_mask"] = torch.arange(sources + 2) < sources
        masks["target_mask"] = torch.arange(targets + 1) < targets
    alignment = getattr(AlignmentPosterior, kind)(words, second, **masks)
    expected = Enumerated(z, weights)
    torch.testing.assert_close(alignment.log_likelihood, expected.log_partition)
    torch.testing.assert_close(alignment.marginals, expected.marginals)
    torch.testing.assert_close(alignment.entropy(), expected.entropy)
    assert torch.equal(alignment.mode, z[weights.argmax()])
    torch.manual_seed(0)
    assert (alignment.sample(SAMPLES).mean(0) - expected.marginals).abs().max() < 0.06 if z.numel() else True
    some = torch.arange(0, len(z), max(1, len(z) // 500))
    torch.testing.assert_close(alignment.log_prob(z[some]), weights.log_softmax(0)[some])
    if targets > 1 and sources > 1 and kind != "hard":
        back = z[:1].clone()
        back[:, 0], back[:, 1] = z[-1, -1 - padded], z[0, 0]
        assert (alignment.log_prob(back) == -torch.inf).all()


def test_segment_to_segment_may_have_to_reach_the_end():
    words, scores = -random(3, 4).abs(), random(3, 4, seed=1)
    weights = torch.stack(
        [
            alignment_weight("segment_to_segment", (*path, 3), words, scores, None)
            for path in itertools.product(range(4), repeat=2)
        ]
    )
    alignment = AlignmentPosterior.segment_to_segment(words, scores, to_the_end=True)
    torch.testing.assert_close(alignment.log_likelihood, weights.logsumexp(0))
