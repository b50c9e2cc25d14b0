"""At the edges: structures that cannot be, -inf, nothing to align to, torch.func."""

import itertools

import pytest
import torch

from saccade import masks
from saccade.distributions import AlignmentPosterior, Categorical, Chain, SegmentSet, Structured, Subset, Tree
from saccade.losses import entropy_bonus, hard_alignment_loss, reinforce_loss, segment_to_segment_loss
from saccade.structures import Structure, log_plus

INF = torch.inf


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("projective", [True, False])
def test_trees_of_several_roots_are_none_with_a_single_root(projective):
    only_roots = torch.where(torch.eye(3, dtype=torch.bool), random(3, 3), -INF).requires_grad_()
    tree = Tree.of(only_roots, projective=projective)
    assert tree.log_partition == -INF
    assert not tree.marginals.any()
    assert not tree.mode.any()
    assert not tree.sample(3).any()
    assert tree.log_prob(tree.mode) == 0
    (gradient,) = torch.autograd.grad(tree.marginals.sum() + tree.entropy(), only_roots)
    assert (gradient == 0).all()
    several = Tree.of(only_roots, projective=projective, single_root=False)
    torch.testing.assert_close(several.marginals, torch.eye(3, dtype=torch.float64))


@pytest.mark.parametrize("scale", [1.0, 50.0])
def test_single_root_trees_with_forbidden_arcs_are_those_of_the_enumeration(scale):
    def is_tree(heads):
        for word in range(len(heads)):
            for _ in heads:
                word = heads[word]
            if heads[word] != word:
                return False
        return sum(head == word for word, head in enumerate(heads)) == 1

    for seed in range(40):
        size = 1 + seed % 4
        arcs = scale * random(size, size, seed=seed)
        arcs[random(size, size, seed=seed + 100) < 0] = -INF
        trees = [heads for heads in itertools.product(range(size), repeat=size) if is_tree(heads)]
        expected = torch.stack([arcs[range(size), heads].sum() for heads in trees]).logsumexp(0)
        torch.testing.assert_close(Tree.of(arcs, projective=False).log_partition, expected)


def test_the_only_z_of_an_impossible_chain_is_certain():
    chain = Chain.of(torch.full((3, 2), -INF), torch.zeros(2, 2))
    assert chain.log_prob(chain.mode) == 0
    assert chain.log_prob(torch.ones(3, 2)) == -INF


@pytest.mark.parametrize("gap", [1.0, 25.0, 50.0, 100.0])
def test_kl_is_infinite_however_rarely_the_other_cannot_be(gap):
    transitions = torch.zeros(2, 2, dtype=torch.float64)
    seldom, never = (torch.tensor([[0.0, -g], [0.0, 0.0]], dtype=torch.float64) for g in (gap, INF))
    assert Chain.of(seldom, transitions).kl(Chain.of(never, transitions)) == INF
    assert Chain.of(never, transitions).kl(Chain.of(seldom, transitions)) < INF


@pytest.mark.parametrize("single_root", [True, False])
def test_kl_is_finite_where_the_other_forbids_what_cannot_be(single_root):
    arcs = torch.tensor([[0.0, 0.3], [-INF, 0.2]], dtype=torch.float64)
    less = torch.tensor([[-INF, 0.3], [-INF, 0.2]], dtype=torch.float64)  # with a single root, the other word is it
    one, other = (Tree.of(each, projective=False, single_root=single_root) for each in (arcs, less))
    assert one.kl(other).abs() < 1e-9 if single_root else one.kl(other) == INF


def test_kl_of_shared_and_of_own_transitions():
    unary, other, shared, own = random(5, 3), random(5, 3, seed=1), random(3, 3), random(4, 3, 3, seed=2)
    expanded = Chain.of(unary, shared.expand(4, 3, 3))
    one, two = Chain.of(unary, shared), Chain.of(other, own)
    drawn = one.sample(20000).unique(dim=0)
    expected = (one.log_prob(drawn).exp() * (one.log_prob(drawn) - two.log_prob(drawn))).sum()
    torch.testing.assert_close(one.kl(two), expected, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(one.kl(two), expanded.kl(two))
    torch.testing.assert_close(two.kl(one), two.kl(expanded))


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        (lambda: Tree.of(random(5, 5)), lambda: Tree.of(random(1, 1)), r"potentials are \(5, 5\) and \(1, 1\)"),
        (lambda: Tree.of(random(2, 4, 4)), lambda: Tree.of(random(3, 4, 4)), r"\(2, 4, 4\) and \(3, 4, 4\)"),
        (lambda: Tree.of(random(3, 3)), lambda: Categorical(torch.ones(3) / 3), "got ProjectiveTrees and Categorical"),
        (
            lambda: SegmentSet.of(random(2, 5), random(1), torch.ones(5, dtype=torch.bool)),
            lambda: SegmentSet.of(random(2, 5), random(3), torch.ones(5, dtype=torch.bool)),
            "potentials are",
        ),
        (
            lambda: AlignmentPosterior.stepwise_monotonic(random(3, 5), random(3, 5, 1)),
            lambda: AlignmentPosterior.stepwise_monotonic(random(3, 5), random(3, 5, 3)),
            "potentials are",
        ),
        (
            lambda: Subset.of(random(2, 5), 2, torch.ones(5, dtype=torch.bool)),
            lambda: Subset.of(random(2, 5), 3, torch.ones(5, dtype=torch.bool)),
            "`sizes` differs",
        ),
    ],
)
def test_kl_names_what_differs(one, other, message):
    with pytest.raises(ValueError, match=message):
        one().kl(other())


def test_kl_looks_at_what_structures_there_are():
    two_keys = torch.tensor([[True, True, False, False, False]])
    one, other = (Subset.of(torch.zeros(1, 5), k, two_keys) for k in (3, 4))
    assert one.kl(other) == 0  # both keys, with either


def test_a_structure_of_more_parts_than_keys():
    class Fences(Structure):
        """One of n + 1 fences."""

        def log_partition(self, potentials, plus=log_plus):
            return plus(potentials[0], -1)

    class Fence(Structured):
        def indicator(self, parts):
            return parts[0][..., 1:].to(self.dtype)

        def parts(self, z):
            return (torch.cat([1 - z.sum(-1, keepdim=True), z], -1).double(),)

    fence = Fence(Fences(), (random(2, 5),))
    assert (fence.log_prob(fence.mode) > -INF).all()


KINDS = {
    "hard": lambda words, scores, **masks: AlignmentPosterior.hard(words, scores, **masks),
    "hard monotonic": lambda words, scores, **masks: AlignmentPosterior.hard_monotonic(words, scores, **masks),
    "segment to segment": lambda words, scores, **masks: AlignmentPosterior.segment_to_segment(words, scores, **masks),
    "stepwise": lambda words, scores, **masks: AlignmentPosterior.stepwise_monotonic(
        words, torch.stack([scores, scores.flip(-1)], -1), **masks
    ),
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("wrong", [-INF, INF, torch.nan])
def test_what_stands_at_padding_changes_nothing(name, wrong):
    words, scores = -random(2, 3, 4).abs(), random(2, 3, 4, seed=1)
    targets = torch.tensor([[True, True, False], [True, True, True]])
    masks = {"target_mask": targets}
    padded = torch.where(targets.unsqueeze(-1), scores, wrong).requires_grad_()
    expected, found = (KINDS[name](words, each, **masks).log_likelihood for each in (scores, padded))
    torch.testing.assert_close(found, expected)
    assert torch.autograd.grad(found.sum(), padded)[0].isfinite().all()


@pytest.mark.parametrize("name", KINDS)
def test_forbidden_scores_have_finite_gradients(name):
    for seed in range(20):
        scores = random(3, 4, seed=seed)
        scores[random(3, 4, seed=seed + 50) < 0] = -INF
        scores.requires_grad_()
        alignment = KINDS[name](-random(3, 4, seed=1).abs(), scores)
        total = torch.where(alignment.log_likelihood > -INF, alignment.log_likelihood, 0.0)
        (gradient,) = torch.autograd.grad(total + (alignment.marginals**2).sum(), scores)
        assert gradient.isfinite().all()
        assert (alignment.marginals.sum(-1) <= 1 + 1e-9).all()


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("steps", [0, 2])
def test_alignments_to_nothing(name, steps):
    nothing = torch.zeros(2, steps, 0, dtype=torch.float64)
    alignment = KINDS[name](nothing, nothing)
    assert (alignment.log_likelihood == (-INF if steps else 0.0)).all()
    for z in (alignment.marginals, alignment.mode, alignment.sample()):
        assert z.shape == nothing.shape
    assert (alignment.log_prob(alignment.mode) == 0).all()


def test_losses_of_alignments_to_nothing_are_infinite():
    nothing = torch.zeros(2, 3, 0)
    assert hard_alignment_loss(nothing, nothing) == INF
    assert segment_to_segment_loss(nothing, nothing) == INF


def test_the_end_is_the_last_source_that_there_is():
    words, scores = -random(2, 5).abs(), random(2, 5, seed=1)
    mask = torch.tensor([True, False, True, True, False])
    found = AlignmentPosterior.segment_to_segment(words, scores, source_mask=mask, to_the_end=True).log_likelihood
    expected = AlignmentPosterior.segment_to_segment(words[:, mask], scores[:, mask], to_the_end=True).log_likelihood
    torch.testing.assert_close(found, expected)


def test_losses_of_one_structure_for_all_steps():
    arcs = random(2, 4, 4).requires_grad_()
    tree = Tree.of(arcs, training=True)
    torch.manual_seed(0)
    likelihood = random(2, seed=1)
    loss, _ = reinforce_loss(tree, likelihood, 0.5, entropy_weight=0.3)
    expected = likelihood + (likelihood - 0.5) * tree.log_prob(tree.draw) + 0.3 * tree.entropy()
    torch.testing.assert_close(loss, -expected.mean())
    torch.testing.assert_close(entropy_bonus(tree), -tree.entropy().mean())
    some = torch.tensor([[True, True, False, False], [False, False, False, False]])
    torch.testing.assert_close(entropy_bonus(tree, step_mask=some), -tree.entropy()[0])
    torch.testing.assert_close(entropy_bonus(tree, step_mask=some.any(-1)), -tree.entropy()[0])
    torch.testing.assert_close(entropy_bonus(tree, step_mask=masks.from_lengths([2, 0])), -tree.entropy()[0])


TRANSITIONS, DURATIONS = random(4, 4, seed=3), random(3, seed=3)
STRUCTURES = {
    "projective": lambda scores: Tree.of(scores),
    "non-projective": lambda scores: Tree.of(scores, projective=False),
    "chain": lambda scores: Chain.of(scores, TRANSITIONS),
    "subset": lambda scores: Subset.of(scores, 2, torch.ones(4, 4, dtype=torch.bool)),
    "segments": lambda scores: SegmentSet.of(scores, DURATIONS, torch.ones(4, 4, dtype=torch.bool)),
    "alignment": lambda scores: AlignmentPosterior.hard_monotonic(-scores.abs(), scores),
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_torch_func_maps_and_differentiates(name):
    scores, weights = random(3, 4, 4), random(4, 4, seed=1)

    def figure(x):
        return (STRUCTURES[name](x).marginals * weights).sum()

    given = scores.clone().requires_grad_()
    (expected,) = torch.autograd.grad(torch.stack([figure(x) for x in given]).sum(), given)
    torch.testing.assert_close(torch.func.vmap(torch.func.grad(figure))(scores), expected)


@pytest.mark.parametrize("name", ["subset", "segments"])
def test_indices_are_not_taken_for_structures(name):
    with pytest.raises(ValueError, match="one_hot"):
        STRUCTURES[name](random(4, 4)).log_prob(torch.tensor([0, 1]))


@pytest.mark.parametrize("name", STRUCTURES)
def test_samples_are_counted(name):
    structure = STRUCTURES[name](random(4, 4))
    assert structure.sample(0).shape == (0, 4, 4)
    with pytest.raises(ValueError, match="n must be 0 or more, got -1"):
        structure.sample(-1)
