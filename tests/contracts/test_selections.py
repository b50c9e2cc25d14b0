"""What holds for every selection."""

import pytest
import torch

from saccade.selections import selections

from .members import SELECTIONS, SIZES, Sizes, build, covered, select

NAMES = covered(selections, SELECTIONS)
DTYPES = [torch.float32, torch.float64, torch.bfloat16]
BATCH, QUERIES, KEYS = SIZES.batch, SIZES.queries, SIZES.keys

every_selection = pytest.mark.parametrize("name", NAMES)
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: str(dtype).removeprefix("torch."))

every_mode = pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])


def make_scores(*shape, dtype=torch.float64, seed=1, spread=1.3):
    generator = torch.Generator().manual_seed(seed)
    return (spread * torch.randn(*shape, generator=generator, dtype=torch.float64)).to(dtype)


def suffix_mask(*lengths, keys=KEYS):
    return torch.arange(keys) < torch.tensor(lengths)[:, None, None]


def check_mass(marginals, mass, empty=None, tolerance=1e-12):
    """Non-negative weights of the declared mass, none in rows that have no key."""
    assert (marginals >= 0).all()
    total = marginals.double().sum(-1)
    empty = torch.zeros_like(total, dtype=torch.bool) if empty is None else empty
    assert (total[empty] == 0).all()
    if mass == "one":
        torch.testing.assert_close(total[~empty], torch.ones_like(total[~empty]), rtol=0, atol=tolerance)
    elif mass == "one or none":
        assert ((total == 0) | ((total - 1).abs() <= tolerance)).all()
    elif mass == "at most one":
        assert (total <= 1 + tolerance).all()
    else:
        assert (marginals <= 1 + tolerance).all()


def check_gradients(loss, selection, scores):
    """All finite; returns that of the scores, None if they have none (a hard choice passes no gradient on)."""
    if not loss.requires_grad:
        return None
    parameters = [p for p in selection.parameters() if p.requires_grad]
    gradients = torch.autograd.grad(loss, [scores, *parameters], allow_unused=True)
    for gradient in gradients:
        assert gradient is None or gradient.isfinite().all()
    return gradients[0]


@every_selection
def test_marginals_have_the_declared_mass(name):
    selection = build(SELECTIONS[name])
    distribution = select(selection, make_scores(*BATCH, QUERIES, KEYS))
    assert distribution.marginals.shape == (*BATCH, QUERIES, KEYS)
    check_mass(distribution.marginals, SELECTIONS[name].mass)


@every_selection
@every_dtype
def test_mass_in_every_dtype(name, dtype):
    selection = build(SELECTIONS[name], dtype=dtype)
    marginals = select(selection, make_scores(*BATCH, QUERIES, KEYS, dtype=dtype)).marginals
    assert marginals.dtype == dtype
    check_mass(marginals, SELECTIONS[name].mass, tolerance=64 * torch.finfo(dtype).eps)


@every_selection
def test_masked_is_removed(name):
    selection = build(SELECTIONS[name])
    scores = make_scores(*BATCH, QUERIES, KEYS)
    kept = torch.arange(KEYS) < 7 if SELECTIONS[name].positional else torch.arange(KEYS) % 3 != 1
    keys = make_scores(*BATCH, KEYS, SIZES.key_dim)
    masked = select(selection, scores, kept.expand(*BATCH, 1, KEYS), keys=keys)
    removed = select(selection, scores[..., kept], keys=keys[..., kept, :])
    torch.testing.assert_close(masked.marginals[..., kept], removed.marginals)
    assert (masked.marginals[..., ~kept] == 0).all()
    torch.testing.assert_close(masked.entropy(), removed.entropy())
    torch.testing.assert_close(masked.mode[..., kept], removed.mode)
    assert not masked.support[..., ~kept].any()


@every_selection
def test_masked_is_removed_in_each_row_by_its_own_mask(name):
    selection = build(SELECTIONS[name])
    if SELECTIONS[name].positional or selection.stateful:
        pytest.skip("rows are not independent of the positions of keys or of each other")
    scores = make_scores(QUERIES, KEYS)
    mask = make_scores(QUERIES, KEYS, seed=2) > 0
    together = select(selection, scores, mask).marginals
    for row in range(QUERIES):
        kept = mask[row]
        alone = select(selection, scores[row : row + 1, kept]).marginals
        torch.testing.assert_close(together[row : row + 1, kept], alone)
        assert (together[row, ~kept] == 0).all()


@every_selection
def test_what_stands_under_the_mask_does_not_matter(name):
    selection = build(SELECTIONS[name])
    scores = make_scores(*BATCH, QUERIES, KEYS)
    mask = suffix_mask(5, 11)
    keys = make_scores(*BATCH, KEYS, SIZES.key_dim)
    clean = select(selection, scores, mask, keys=keys)
    garbage = select(
        selection,
        torch.where(mask, scores, 1e4),
        mask,
        keys=torch.where(mask.transpose(-1, -2), keys, -1e4),
    )
    torch.testing.assert_close(garbage.marginals, clean.marginals)
    torch.testing.assert_close(garbage.entropy(), clean.entropy())


@every_selection
def test_infinite_and_nan_scores_under_the_mask_do_not_matter(name):
    selection = build(SELECTIONS[name])
    mask = suffix_mask(5, 11)
    scores = make_scores(*BATCH, QUERIES, KEYS)
    clean = select(selection, scores, mask).marginals
    for garbage in (-torch.inf, torch.inf, torch.nan):
        given = torch.where(mask, scores, garbage).requires_grad_()
        marginals = select(selection, given, mask).marginals
        torch.testing.assert_close(marginals, clean)
        check_gradients((marginals * make_scores(KEYS)).sum(), selection, given)


@every_selection
def test_row_alone_is_row_in_batch(name):
    selection = build(SELECTIONS[name])
    scores = make_scores(*BATCH, QUERIES, KEYS)
    mask = suffix_mask(5, 11)
    query = make_scores(*BATCH, QUERIES, SIZES.query_dim)
    together = select(selection, scores, mask, query=query).marginals
    for row, length in enumerate((5, 11)):
        alone = select(selection, scores[row : row + 1, :, :length], query=query[row : row + 1]).marginals
        torch.testing.assert_close(together[row : row + 1, :, :length], alone)


@every_selection
@pytest.mark.parametrize("batch", [(), (2,), (2, 3)], ids=len)
def test_any_number_of_batch_dimensions(name, batch):
    selection = build(SELECTIONS[name])
    scores = make_scores(*batch, 5, KEYS)
    distribution = select(selection, scores)
    flat = select(selection, scores.reshape(-1, 5, KEYS))
    torch.testing.assert_close(distribution.marginals, flat.marginals.reshape(scores.shape))
    assert distribution.entropy().shape == (*batch, 5)
    assert distribution.mode.shape == distribution.sample().shape == scores.shape
    assert distribution.sample(7).shape == (7, *scores.shape)
    assert distribution.log_prob(distribution.mode).shape == (*batch, 5)


@every_selection
@every_dtype
@every_mode
def test_fully_masked_rows(name, dtype, training):
    selection = build(SELECTIONS[name], dtype=dtype).train(training)
    scores = make_scores(*BATCH, QUERIES, KEYS, dtype=dtype).requires_grad_()
    mask = suffix_mask(0, 5)
    distribution = select(selection, scores, mask)
    assert (distribution.marginals[0] == 0).all()
    assert (distribution.coefficients[0] == 0).all()
    assert (distribution.mode[0] == 0).all()
    assert (distribution.sample()[0] == 0).all()
    assert (distribution.sample(7)[:, 0] == 0).all()
    assert (distribution.entropy()[0] == 0).all()
    assert (distribution.log_prob(torch.zeros_like(scores))[0] == 0).all()
    loss = ((distribution.coefficients + distribution.draw) * make_scores(KEYS, dtype=dtype)).sum()
    loss = loss + distribution.entropy().sum()
    loss = loss + distribution.log_prob(distribution.mode).sum()
    gradient = check_gradients(loss, selection, scores)
    assert gradient is None or (gradient[0] == 0).all()


@every_selection
@every_mode
def test_everything_masked(name, training):
    selection = build(SELECTIONS[name]).train(training)
    scores = make_scores(*BATCH, QUERIES, KEYS).requires_grad_()
    distribution = select(selection, scores, torch.zeros(*BATCH, 1, KEYS, dtype=torch.bool))
    assert (distribution.marginals == 0).all()
    assert (distribution.draw == 0).all()
    gradient = check_gradients(distribution.marginals.sum() + distribution.draw.sum(), selection, scores)
    assert gradient is None or (gradient == 0).all()


@every_selection
@pytest.mark.parametrize("keys", [0, 1])
@pytest.mark.parametrize("queries", [0, 1, 3])
def test_lengths_of_zero_and_one(name, keys, queries):
    selection = build(SELECTIONS[name])
    scores = make_scores(2, queries, keys).requires_grad_()
    for mask in (None, torch.ones(2, 1, keys, dtype=torch.bool)):
        distribution = select(selection, scores, mask)
        assert distribution.marginals.shape == distribution.mode.shape == (2, queries, keys)
        assert distribution.sample().shape == (2, queries, keys)
        assert distribution.sample(5).shape == (5, 2, queries, keys)
        assert distribution.entropy().shape == (2, queries)
        assert distribution.log_prob(distribution.mode).shape == (2, queries)
        assert distribution.marginals.isfinite().all()
        assert distribution.entropy().isfinite().all()
        assert distribution.log_prob(distribution.mode).isfinite().all()
        if keys and queries:
            check_mass(distribution.marginals.detach(), SELECTIONS[name].mass)
        check_gradients(distribution.marginals.sum(), selection, scores)


@every_selection
@every_dtype
@every_mode
def test_extreme_scores_are_finite(name, dtype, training):
    selection = build(SELECTIONS[name], dtype=dtype).train(training)
    signs = torch.randint(-1, 2, (7, QUERIES, KEYS), generator=torch.Generator().manual_seed(3))
    signs[0], signs[1], signs[2] = 1, -1, 0  # all equal: a tie of extremes
    scores = (1e4 * signs).to(dtype).requires_grad_()
    mask = suffix_mask(KEYS, KEYS, KEYS, 1, 5, 0, KEYS)
    distribution = select(selection, scores, mask)
    empty = torch.zeros(7, QUERIES, dtype=torch.bool)
    empty[5] = True
    check_mass(distribution.marginals.detach(), SELECTIONS[name].mass, empty, tolerance=64 * torch.finfo(dtype).eps)
    assert distribution.entropy().isfinite().all()
    assert (distribution.entropy() >= -64 * torch.finfo(dtype).eps).all()
    assert distribution.log_prob(distribution.mode).isfinite().all()
    loss = ((distribution.coefficients + distribution.draw) * make_scores(KEYS, dtype=dtype)).sum()
    loss = loss + distribution.entropy().sum()
    loss = loss + distribution.log_prob(distribution.mode).sum()
    check_gradients(loss, selection, scores)


@every_selection
def test_gradcheck(name):
    if not SELECTIONS[name].differentiable:
        pytest.skip("a hard choice has no gradient")
    selection = build(SELECTIONS[name], Sizes(query_dim=2, key_dim=3))
    mask = suffix_mask(5, 3, keys=5)
    query = make_scores(2, 2, 2).requires_grad_()
    keys = make_scores(2, 5, 3).requires_grad_()
    parameters = tuple(p for p in selection.parameters() if p.requires_grad)

    def everything(scores, query, keys, *_):
        distribution = select(selection, scores, mask, query=query, keys=keys)
        return distribution.marginals, distribution.coefficients, distribution.entropy()

    # Spread scores keep finite differences away from the kinks of piecewise maps.
    scores = make_scores(2, 2, 5, spread=0.7, seed=5).requires_grad_()
    assert torch.autograd.gradcheck(everything, (scores, query, keys, *parameters))


@every_selection
def test_gradcheck_of_log_prob(name):
    if not SELECTIONS[name].differentiable:
        pytest.skip("a hard choice has no gradient")
    selection = build(SELECTIONS[name])
    mask = suffix_mask(5, 3, keys=5)
    scores = make_scores(2, 3, 5, spread=0.7, seed=5).requires_grad_()
    z = select(selection, scores, mask).mode.detach()
    assert torch.autograd.gradcheck(lambda scores: select(selection, scores, mask).log_prob(z), (scores,))


@every_selection
def test_selection_refuses_scores_that_are_not_finite(name):
    selection = build(SELECTIONS[name])
    scores = make_scores(*BATCH, QUERIES, KEYS)
    scores[1, 2, 3] = torch.nan
    with pytest.raises(ValueError, match=r"finite.*nan at index \(1, 2, 3\)"):
        select(selection, scores)


@every_selection
def test_distribution_does_not_depend_on_training_mode(name):
    selection = build(SELECTIONS[name])
    if selection.stochastic:
        pytest.skip("stochastic by definition")
    scores = make_scores(*BATCH, QUERIES, KEYS)
    evaluated = select(selection.eval(), scores, suffix_mask(5, 11))
    trained = select(selection.train(), scores, suffix_mask(5, 11))
    torch.testing.assert_close(trained.marginals, evaluated.marginals, rtol=0, atol=0)
    assert trained.training
    assert not evaluated.training


@every_selection
def test_state_passed_on_is_all_at_once(name):
    selection = build(SELECTIONS[name])
    scores = make_scores(*BATCH, 5, KEYS)
    mask = suffix_mask(5, 11)
    query = make_scores(*BATCH, 5, SIZES.query_dim)
    together = select(selection, scores, mask, query=query).marginals
    state = None
    for start, stop in ((0, 1), (1, 3), (3, 3), (3, 5)):
        part = select(selection, scores[:, start:stop], mask, query=query[:, start:stop], state=state)
        state = selection.advance(state, part)
        torch.testing.assert_close(part.marginals, together[:, start:stop])
