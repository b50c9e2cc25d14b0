"""Gradients through marginals: by kernels, without them, and a second time."""

import pytest
import torch

from saccade.distributions import AlignmentPosterior, Chain, Segmentation, SegmentSet, Subset, Tree
from saccade.masks import from_lengths
from saccade.structures import FORBIDDEN, Chains, NonProjectiveTrees, ProjectiveTrees

MASK = torch.tensor([[True, True, False, True], [True, True, True, True]])


def random(*shape, seed=0, spread=1.0):
    return spread * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def tree(projective, single_root):
    def make(scores):
        return Tree.of(scores, mask=MASK.unsqueeze(-2), projective=projective, single_root=single_root)

    return make, [random(2, 4, 4)]


CASES = {
    "projective": tree(True, True),
    "projective, roots": tree(True, False),
    "non-projective": tree(False, True),
    "non-projective, roots": tree(False, False),
    "chain": (lambda unary, shared: Chain.of(unary, shared, mask=MASK), [random(2, 4, 3), random(3, 3)]),
    "chain, own transitions": (lambda u, t: Chain.of(u, t, mask=MASK), [random(2, 4, 3), random(2, 3, 3, 3)]),
    "segmentation": (lambda s, b: Segmentation.of(s, b, MASK), [random(2, 4), random(2, 2)]),
    "subset": (lambda scores: Subset.of(scores, 2, MASK), [random(2, 4)]),
    "segments": (lambda scores, durations: SegmentSet.of(scores, durations, MASK), [random(2, 4), random(3)]),
    "hard monotonic": (
        lambda w, s: AlignmentPosterior.hard_monotonic(w, s, source_mask=MASK[1]),
        [random(3, 4), random(3, 4)],
    ),
    "segment to segment": (AlignmentPosterior.segment_to_segment, [random(3, 4), random(3, 4, seed=1)]),
    "stepwise": (AlignmentPosterior.stepwise_monotonic, [random(3, 4), random(3, 4, 2)]),
}


@pytest.fixture(params=["native", "plain"])
def path(request, monkeypatch):
    if request.param == "plain":
        monkeypatch.setenv("SACCADE_NATIVE", "0")
    return request.param


@pytest.mark.parametrize("name", CASES)
def test_gradcheck_and_gradgradcheck(name, path):
    make, inputs = CASES[name]
    inputs = [tensor.clone().requires_grad_() for tensor in inputs]

    def everything(*given):
        distribution = make(*given)
        return distribution.marginals, distribution.log_partition, distribution.entropy()

    assert torch.autograd.gradcheck(everything, inputs)
    assert torch.autograd.gradgradcheck(everything, inputs, fast_mode=True)


@pytest.mark.parametrize("name", CASES)
def test_a_gradient_that_can_be_differentiated_is_the_same(name, path):
    make, inputs = CASES[name]
    inputs = [tensor.clone().requires_grad_() for tensor in inputs]
    for look in (lambda d: d.marginals.square(), lambda d: d.log_partition, lambda d: d.entropy()):
        once, again = (torch.autograd.grad(look(make(*inputs)).sum(), inputs, create_graph=g) for g in (False, True))
        torch.testing.assert_close(again, once)


@pytest.mark.parametrize("name", ["chain", "chain, own transitions"])
def test_edges_have_gradients(name, path):
    make, inputs = CASES[name]
    inputs = [tensor.clone().requires_grad_() for tensor in inputs]
    assert torch.autograd.gradcheck(lambda *given: make(*given).edges, inputs)


@pytest.mark.parametrize("spread", [1, 30])
@pytest.mark.parametrize("name", CASES)
def test_float32_is_float64_rounded(name, spread, path):
    make, inputs = CASES[name]
    results = {}
    for dtype in (torch.float32, torch.float64):
        given = [(spread * tensor).float().to(dtype).requires_grad_() for tensor in inputs]
        found = make(*given)
        looked = [found.marginals, found.log_partition, found.entropy()]
        if hasattr(found, "edges"):
            looked.append(found.edges)
        assert all(each.dtype == dtype for each in looked)
        directions = [random(1, *each.shape, seed=i)[0].to(dtype) for i, each in enumerate(looked)]
        outcome = torch.stack([(each * way).sum() for each, way in zip(looked, directions, strict=True)]).sum()
        slopes = torch.autograd.grad(outcome, given, create_graph=True)
        bends = torch.autograd.grad(torch.stack([slope.square().sum() for slope in slopes]).sum(), given)
        assert all(each.dtype == dtype for each in (*slopes, *bends))
        results[dtype] = [each.double() for each in (*looked, *slopes, *bends)]
    torch.testing.assert_close(results[torch.float32], results[torch.float64], rtol=1e-5, atol=1e-5 * spread)


@pytest.mark.parametrize("name", CASES)
def test_native_is_plain_for_scores_far_apart(name, monkeypatch):
    make, inputs = CASES[name]
    results = {}
    for native in ("1", "0"):
        monkeypatch.setenv("SACCADE_NATIVE", native)
        given = [(40 * tensor).requires_grad_() for tensor in inputs]
        marginals = make(*given).marginals
        weights = random(*marginals.shape, seed=3)
        results[native] = (marginals, *torch.autograd.grad((marginals * weights).sum(), given))
    torch.testing.assert_close(results["1"], results["0"], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("spread", [0.5, 2.0, 5.0, 20.0])
@pytest.mark.parametrize("size", [1, 2, 7, 29])
def test_gradients_of_crossing_trees_are_right_however_steep(size, spread, single_root, monkeypatch):
    """By products of matrices where nothing cancels, by elimination where something would."""
    present = torch.ones(3, size, dtype=torch.bool)
    present[1, : size // 2] = False
    results = []
    for native in ("1", "0"):
        monkeypatch.setenv("SACCADE_NATIVE", native)
        scores = random(3, size, size, spread=spread).requires_grad_()
        tree = Tree.of(scores, mask=present.unsqueeze(-2), projective=False, single_root=single_root)
        results.append(torch.autograd.grad((tree.marginals * random(3, size, size, seed=1)).sum(), scores))
    torch.testing.assert_close(results[0], results[1], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("projective", [True, False])
@pytest.mark.parametrize("spread", [1.0, 10.0, 50.0])
def test_float32_trees_of_60_words_are_exact(projective, single_root, spread, monkeypatch):
    scores = (spread * (2 * torch.rand(2, 60, 60, generator=torch.Generator().manual_seed(0)) - 1)).float()
    marginals = Tree.of(scores, projective=projective, single_root=single_root).marginals
    monkeypatch.setenv("SACCADE_NATIVE", "0")  # in logarithms, float64 throughout
    exact = Tree.of(scores.double(), projective=projective, single_root=single_root).marginals
    assert marginals.dtype == torch.float32
    torch.testing.assert_close(marginals.double(), exact, rtol=0, atol=1e-5)
    torch.testing.assert_close(marginals.sum(-1), torch.ones(2, 60), rtol=0, atol=1e-5)


def test_a_cycle_that_everyone_prefers():
    """Two words that are each other's best head by far, and roots by far the worst: where determinants cancel."""
    scores = torch.tensor([[-50.0, 50.0], [50.0, -49.0]])
    p = torch.sigmoid(torch.tensor(1.0)).item()  # a root costs 100 either way, and one a little less
    for projective in (True, False):
        marginals = Tree.of(scores, projective=projective).marginals
        torch.testing.assert_close(marginals, torch.tensor([[1 - p, p], [1 - p, p]]))


@pytest.mark.parametrize("spread", [1.0, 50.0])
def test_long_float32_chains_are_exact(spread):
    unary = spread * torch.randn(2, 256, 5, generator=torch.Generator().manual_seed(0))
    transitions = torch.randn(5, 5, generator=torch.Generator().manual_seed(1))
    weights = random(2, 256, 5)
    given = [unary.requires_grad_(), transitions.requires_grad_()]
    marginals = Chain.of(*given).marginals
    ours = (marginals, *torch.autograd.grad((marginals * weights).sum(), given))
    double = [tensor.detach().double().requires_grad_() for tensor in given]
    marginals = Chain.of(*double).marginals
    theirs = (marginals, *torch.autograd.grad((marginals * weights).sum(), double))
    for one, two in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one.double(), two, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("projective", [True, False])
def test_impossible_trees_are_empty(projective, single_root, path):
    scores = random(3, 4, 4).requires_grad_()
    mask = torch.ones(3, 4, 4, dtype=torch.bool)
    mask[0] = False
    mask[0, :2, :2] = ~torch.eye(2, dtype=torch.bool)  # two words that can only be each other's head
    mask[1] = False
    tree = Tree.of(scores, mask=mask, projective=projective, single_root=single_root)
    assert (tree.marginals[:2] == 0).all()
    torch.testing.assert_close(tree.marginals[2].sum(-1), torch.ones(4, dtype=torch.float64))
    assert tree.log_partition[0] == -torch.inf
    assert tree.log_partition[1] == 0
    assert (tree.mode[:2] == 0).all()
    assert (tree.sample(5)[:, :2] == 0).all()
    assert (tree.entropy()[:2] == 0).all()
    assert (tree.log_prob(torch.zeros_like(scores))[:2] == 0).all()
    total = (tree.marginals * random(3, 4, 4, seed=1)).sum() + tree.entropy().sum()
    (gradient,) = torch.autograd.grad(total, scores)
    assert gradient.isfinite().all()
    assert (gradient[:2] == 0).all()


def test_kl_is_that_of_the_enumeration():
    p, q = Tree.of(random(4, 4)), Tree.of(random(4, 4, seed=1))
    drawn = p.sample(20000).unique(dim=0)
    expected = (p.log_prob(drawn).exp() * (p.log_prob(drawn) - q.log_prob(drawn))).sum()
    torch.testing.assert_close(p.kl(q), expected, rtol=1e-3, atol=1e-4)
    assert p.kl(p).abs() < 1e-12
    unary, transitions = random(5, 3), random(3, 3)
    one, two = Chain.of(unary, transitions), Chain.of(unary.flip(0), transitions)
    drawn = one.sample(20000).unique(dim=0)
    expected = (one.log_prob(drawn).exp() * (one.log_prob(drawn) - two.log_prob(drawn))).sum()
    torch.testing.assert_close(one.kl(two), expected, rtol=1e-3, atol=1e-3)
    never = unary.clone()
    never[2, 1] = -torch.inf
    assert one.kl(Chain.of(never, transitions)) == torch.inf
    assert Chain.of(never, transitions).kl(one) < torch.inf
    assert one.kl(Chain.of(unary, transitions, mask=torch.ones(5, dtype=torch.bool))).abs() < 1e-12


def test_float32_keeps_the_digits_that_large_potentials_would_cost():
    """Marginals are rounded to float32; what is made of them and of potentials of 10,000 is not."""
    chain = Chain.of(random(2, 6, 3).float() + 1e4, random(3, 3).float())
    exact = Chain.of(*(potentials.double() for potentials in chain.potentials))
    torch.testing.assert_close(chain.entropy().double(), exact.entropy(), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(chain.kl(exact), torch.zeros(2), atol=1e-6, rtol=0)


@pytest.mark.parametrize("spread", [1.0, 3.0, 5.0, 15.0])
def test_float32_gradients_of_crossing_trees(spread):
    """Found from marginals that are rounded, where that costs nothing."""
    scores, weights = random(8, 30, 30, spread=spread).float(), random(8, 30, 30, seed=1).float()
    slopes = []
    for dtype in (torch.float32, torch.float64):
        given = scores.to(dtype).requires_grad_()
        tree = Tree.of(given, projective=False)
        slopes.append(torch.autograd.grad((tree.marginals * weights).sum(), given)[0].double())
    torch.testing.assert_close(*slopes, rtol=0, atol=2e-6)


@pytest.mark.parametrize(("length", "states"), [(3000, 2), (400, 60)])
def test_long_flat_chains(length, states):
    chain = Chain.of(torch.zeros(1, length, states), torch.zeros(states, states))
    torch.testing.assert_close(chain.log_partition, torch.tensor([length * torch.tensor(states).log()]))
    torch.testing.assert_close(chain.marginals, torch.full((1, length, states), 1 / states))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_forbidden_throughout_is_impossible(dtype, path):
    arcs = torch.zeros(2, 3, 3, dtype=dtype)
    arcs[0, 0] = FORBIDDEN
    for structure in (NonProjectiveTrees(), ProjectiveTrees()):
        total, (marginals,) = structure.inference((arcs,))
        assert total[0] < FORBIDDEN / 10 < total[1]
        assert not marginals[0].any()
        assert marginals[1].sum() == pytest.approx(3)
    unary, forbidden = torch.zeros(1, 3, 1, dtype=dtype), torch.full((1, 1, 1, 1), FORBIDDEN, dtype=dtype)
    total, (marginals, _) = Chains().inference((unary, forbidden))
    assert total < FORBIDDEN / 10
    assert not marginals.any()


def test_potentials_of_two_types_and_of_no_states(path):
    transitions = torch.tensor([[1.0, 2.0], [1.0, 1.0]], dtype=torch.float64).expand(1, 1, 2, 2)
    total, (states, edges) = Chains().inference((torch.zeros(1, 3, 2), transitions))
    assert total.item() == pytest.approx(Chains().log_partition((torch.zeros(1, 3, 2).double(), transitions)).item())
    assert (states.dtype, edges.dtype) == (torch.float32, torch.float64)
    assert Chains().inference((torch.zeros(1, 5, 0), torch.zeros(1, 1, 0, 0)))[0].item() == 0


WRONG = {
    "one table for each example": (lambda: Chain.of(random(2, 5, 3), random(2, 3, 3)), ValueError, "unsqueeze"),
    "a table too many": (lambda: Chain.of(random(2, 5, 3), random(5, 3, 3)), ValueError, "positions - 1"),
    "other batch": (lambda: Chain.of(random(2, 5, 3), random(3, 1, 3, 3)), ValueError, "broadcast"),
    "float mask": (lambda: Chain.of(random(2, 5, 3), random(3, 3), mask=torch.ones(2, 5)), TypeError, "bool"),
    "other mask": (lambda: Tree.of(random(3, 3), mask=MASK), ValueError, "does not broadcast"),
    "lengths": (lambda: Chain.of(random(2, 5, 3), random(3, 3), mask=from_lengths([5, 2])), TypeError, "bool tensor"),
    "whole numbers": (lambda: Tree.of(torch.zeros(3, 3, dtype=torch.long)), TypeError, "floating-point"),
    "NaN": (lambda: Chain.of(random(2, 5, 3) * torch.nan, random(3, 3)), ValueError, r"nan at index \(0, 0, 0\)"),
    "inf": (lambda: Tree.of(random(3, 3) + torch.inf), ValueError, "inf at index"),
    "targets padded at the start": (
        lambda: AlignmentPosterior.hard(random(3, 4), random(3, 4), target_mask=torch.tensor([False, True, True])),
        ValueError,
        "masked targets must be the last",
    ),
    "sources padded at the start": (
        lambda: AlignmentPosterior.stepwise_monotonic(random(3, 4), random(3, 4, 2), source_mask=MASK[0]),
        ValueError,
        "masked sources must be the last",
    ),
    "states by number": (
        lambda: Chain.of(random(2, 5, 3), random(3, 3)).log_prob(torch.zeros(2, 5)),
        ValueError,
        "one_hot",
    ),
    "half a key": (lambda: Subset.of(random(2, 4), 1.5, MASK), TypeError, "whole number"),
    "other roots": (
        lambda: Tree.of(random(3, 3)).kl(Tree.of(random(3, 3), single_root=False)),
        ValueError,
        "`single_root` differs",
    ),
    "another mask": (
        lambda: Chain.of(random(2, 4, 3), random(3, 3)).kl(Chain.of(random(2, 4, 3), random(3, 3), mask=MASK)),
        ValueError,
        "`mask` differs",
    ),
    "other structures": (lambda: Tree.of(random(3, 3)).kl(Tree.of(random(3, 3), projective=False)), ValueError, "same"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_told(name):
    make, kind, message = WRONG[name]
    with pytest.raises(kind, match=message):
        make()
