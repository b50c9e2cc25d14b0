"""Attention, Memory and Reading."""

import copy

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

import saccade
from saccade import Attention, Memory, Reading, State, masks
from saccade.aggregations import Expectation, FeatureWise, Pairwise, Sample
from saccade.distributions import Bernoulli, Categorical
from saccade.models import Luong, RNNSearch, Transformer
from saccade.scores import AdditiveScore, DotProduct, DotScore, ScaledDotScore, Score, SumScore
from saccade.selections import LinearChain, ProjectiveTree, Softmax, Sparsemax, StepChain

BATCH, QUERIES, KEYS, QUERY, KEY, VALUE = 2, 3, 13, 5, 7, 11


class Counting(Score):
    """Adds, to each score, how much weight the key has had: the smallest stateful score."""

    stateful = True

    def begin(self, query, prepared, mask=None):
        return query.new_zeros(*query.shape[:-2], 1, prepared.shape[-2])

    def compare(self, query, prepared, state=None):
        return query.sum(-1, keepdim=True) * prepared.sum(-1).unsqueeze(-2) - 3 * state

    def advance(self, state, weights, query, prepared):
        return state + weights


@pytest.fixture
def attention():
    return Attention(score=AdditiveScore(query_dim=QUERY, key_dim=KEY, hidden_dim=17)).double()


@pytest.fixture
def tensors():
    made = [torch.randn(BATCH, n, d) for n, d in ((QUERIES, QUERY), (KEYS, KEY), (KEYS, VALUE))]
    return [tensor.double() for tensor in made]


def test_the_equations_as_a_loop(attention, tensors):
    query, keys, values = tensors
    mask = torch.rand(BATCH, QUERIES, KEYS) > 0.3
    reading = attention(query, keys, values, mask=mask)
    w, u = attention.score.query_proj.weight, attention.score.key_proj.weight
    v = attention.score.hidden_proj.weight[0]
    for b in range(BATCH):
        for i in range(QUERIES):
            terms = [
                torch.exp(v @ torch.tanh(w @ query[b, i] + u @ keys[b, j])) * mask[b, i, j].double()
                for j in range(KEYS)
            ]
            weights = torch.stack(terms) / sum(terms)
            torch.testing.assert_close(reading.weights[b, i], weights)
            context = sum(weight * value for weight, value in zip(weights, values[b], strict=True))
            torch.testing.assert_close(reading.context[b, i], context)


def test_values_default_to_keys(attention, tensors):
    query, keys, _ = tensors
    torch.testing.assert_close(attention(query, keys).context, attention(query, keys, keys).context)


def test_public_names():
    assert {"Attention", "MultiHead", "Memory", "Reading", "State", "masks"} <= set(saccade.__all__)


def test_reading_unpacks_in_order(attention, tensors):
    context, selection, state = attention(*tensors)
    assert context.shape == (BATCH, QUERIES, VALUE)
    assert isinstance(selection, Categorical)
    assert state == State(None, None)


def test_reading_says_what_it_is(attention, tensors):
    assert repr(attention(*tensors)) == "Reading(context=(2, 3, 11), selection=Categorical)"
    fused = Attention(score=ScaledDotScore())(tensors[1], tensors[1])
    assert "not computed yet" in repr(fused)
    assert fused.weights.shape == (BATCH, KEYS, KEYS)
    assert "Categorical" in repr(fused)


def test_weights_are_those_before_dropout(attention, tensors):
    query, keys, values = tensors
    evaluated = attention.eval()(query, keys, values)
    dropping = Attention(score=attention.score, dropout=0.5).train()
    reading = dropping(query, keys, values)
    torch.testing.assert_close(reading.weights, evaluated.weights)
    assert not torch.allclose(reading.context, evaluated.context)
    torch.testing.assert_close(dropping.eval()(query, keys, values).context, evaluated.context)


@pytest.mark.parametrize("score", [ScaledDotScore(), AdditiveScore(query_dim=KEY, key_dim=KEY, hidden_dim=17).double()])
def test_dropout_keeps_the_expected_context(score):
    keys = torch.randn(KEYS, KEY).double()
    attention = Attention(score=score, dropout=0.25).train()
    n = 4000
    contexts = attention(keys.expand(n, KEYS, KEY), keys.expand(n, KEYS, KEY)).context.detach()
    expected = attention.eval()(keys, keys).context
    deviation = contexts.std(0) / n**0.5
    assert ((contexts.mean(0) - expected).abs() <= 6 * deviation).all()


class Spy(ScaledDotScore):
    """Counts how often somebody computes the scores."""

    def as_dot_product(self, query, prepared):
        spy = self

        class Watched(DotProduct):
            def scores(self):
                spy.looks += 1
                return DotProduct(*self).scores()

        return Watched(*super().as_dot_product(query, prepared))


def test_fused_reading_computes_weights_only_when_looked_at():
    score = Spy()
    score.looks = 0
    x = torch.randn(BATCH, KEYS, KEY)
    reading = Attention(score=score)(x, x, mask=masks.causal())
    assert score.looks == 0
    context = reading.context.clone()
    first = reading.weights
    assert score.looks == 1
    assert reading.weights is first
    assert reading.selection is reading.selection
    assert score.looks == 1
    assert torch.equal(reading.context, context)


def test_fused_context_is_the_weights_times_the_values():
    x = torch.randn(BATCH, KEYS, KEY).double()
    for mask in (None, masks.causal(), masks.from_lengths([5, 0]), torch.rand(BATCH, KEYS, KEYS) > 0.5):
        reading = Attention(score=ScaledDotScore())(x, x, mask=mask)
        torch.testing.assert_close(reading.context, reading.weights @ x)


def test_fused_gradients_are_the_plain_ones():
    x = torch.randn(BATCH, KEYS, KEY).double().requires_grad_()
    mask = torch.rand(BATCH, KEYS, KEYS) > 0.3
    mask[0, 2] = False
    attention = Attention(score=ScaledDotScore())
    memory = attention.prepare(x, mask=mask)
    fused = attention.read(x, memory)
    plain = attention.read_plain(x, memory, State())
    towards = torch.randn_like(x)
    (ours,) = torch.autograd.grad((fused.context * towards).sum(), x, retain_graph=True)
    (theirs,) = torch.autograd.grad((plain.context * towards).sum(), x, retain_graph=True)
    torch.testing.assert_close(ours, theirs)
    (ours,) = torch.autograd.grad((fused.weights * mask).square().sum(), x, retain_graph=True)
    (theirs,) = torch.autograd.grad((plain.weights * mask).square().sum(), x)
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_fused_empty_rows(dtype):
    x = torch.randn(BATCH, KEYS, KEY, dtype=dtype, requires_grad=True)
    mask = torch.ones(BATCH, KEYS, KEYS, dtype=torch.bool)
    mask[0, 3] = False
    reading = Attention(score=ScaledDotScore())(x, x, mask=mask)
    assert (reading.context[0, 3] == 0).all()
    assert (reading.weights[0, 3] == 0).all()
    (gradient,) = torch.autograd.grad(reading.context.sum(), x)
    assert gradient.isfinite().all()


def test_memory_is_read_by_any_number_of_queries(attention, tensors):
    query, keys, values = tensors
    memory = attention.prepare(keys, values, mask=masks.from_lengths([5, 13]))
    assert len(memory) == memory.num_keys == KEYS
    whole = attention.read(query, memory)
    one = attention.read(query[:, 1:2], memory)
    torch.testing.assert_close(one.context, whole.context[:, 1:2])


def test_append_is_preparing_all_keys_at_once(attention, tensors):
    query, keys, values = tensors
    whole = attention(query, keys, values)
    first = attention.prepare(keys[:, :5], values[:, :5])
    grown = first.append(keys[:, 5:6], values[:, 5:6]).append(keys[:, 6:], values[:, 6:])
    assert len(grown) == KEYS
    assert len(first) == 5
    torch.testing.assert_close(attention.read(query, grown).context, whole.context)
    torch.testing.assert_close(attention.read(query, grown).weights, whole.weights)


def test_append_to_a_reserved_memory(attention, tensors):
    query, keys, values = tensors
    memory = attention.prepare(keys[:, :2], values[:, :2], mask=masks.window(3, 0)).reserve(6)
    parts = [(keys[:, 2:5], values[:, 2:5]), (keys[:, 5:6], values[:, 5:6]), (keys[:, 6:], values[:, 6:])]
    grown = memory
    for part in parts:
        grown = grown.append(*part)
    whole = attention.prepare(keys, values, mask=masks.window(3, 0))
    torch.testing.assert_close(attention.read(query, grown).context, attention.read(query, whole).context)
    assert len(memory) == 2
    rows = torch.tensor([1, 0])
    chosen = grown.index(rows).append(keys[rows, :1], values[rows, :1])
    expected = whole.index(rows).append(keys[rows, :1], values[rows, :1])
    torch.testing.assert_close(chosen.values, expected.values)


def test_append_to_an_empty_memory(attention, tensors):
    query, keys, values = tensors
    memory = attention.prepare(keys[:, :0], values[:, :0])
    assert (attention.read(query, memory).context == 0).all()
    grown = memory.append(keys, values)
    torch.testing.assert_close(attention.read(query, grown).context, attention(query, keys, values).context)


def test_append_nothing(attention, tensors):
    query, keys, values = tensors
    memory = attention.prepare(keys, values, mask=masks.from_lengths([5, 13]))
    same = memory.append(keys[:, :0], values[:, :0])
    torch.testing.assert_close(attention.read(query, same).context, attention.read(query, memory).context)


@pytest.mark.parametrize("old", [None, "lengths", "tensor", "causal"])
@pytest.mark.parametrize("late", [False, True])
def test_masks_grow_with_the_memory(attention, tensors, old, late):
    query, keys, values = tensors
    before = {
        None: None,
        "lengths": masks.from_lengths([2, 5]),
        "tensor": torch.rand(BATCH, 1, 5) > 0.5,
        "causal": masks.causal(),
    }[old]
    after = torch.rand(BATCH, 1, KEYS - 5) > 0.5 if late else None
    memory = attention.prepare(keys[:, :5], values[:, :5], mask=before)
    reading = attention.read(query, memory.append(keys[:, 5:], values[:, 5:], mask=after))
    full = torch.ones(BATCH, QUERIES, KEYS, dtype=torch.bool)
    if old == "causal":
        full &= masks.causal().tensor(QUERIES, KEYS)
    elif before is not None:
        full[..., :5] &= masks.as_mask(before).tensor(1, 5)
    if late:
        full[..., 5:] &= after
    torch.testing.assert_close(reading.context, attention(query, keys, values, mask=full).context)


def test_index_chooses_rows(attention, tensors):
    query, keys, values = tensors
    rows = torch.tensor([1, 1, 0])
    mask = torch.rand(BATCH, QUERIES, KEYS) > 0.3
    memory = attention.prepare(keys, values, mask=mask)
    whole = attention.read(query, memory)
    chosen = attention.read(query[rows], memory.index(rows))
    torch.testing.assert_close(chosen.context, whole.context[rows])
    torch.testing.assert_close(chosen.weights, whole.weights[rows])


def test_index_with_two_batch_dimensions_and_a_mask_of_one():
    x = torch.randn(2, 3, KEYS, KEY).double()
    attention = Attention(score=ScaledDotScore())
    memory = attention.prepare(x, mask=torch.rand(3, 1, KEYS) > 0.5)
    rows = torch.tensor([1, 0, 1])
    torch.testing.assert_close(
        attention.read(x[rows], memory.index(rows)).weights, attention.read(x, memory).weights[rows]
    )


def test_a_stateful_score_reads_in_order(tensors):
    query, keys, values = tensors
    attention = Attention(score=Counting())
    reading = attention(query, keys, values)
    had = torch.zeros(BATCH, 1, KEYS).double()
    for i in range(QUERIES):
        one = query[:, i : i + 1]
        weights = torch.softmax(one.sum(-1, keepdim=True) * keys.sum(-1).unsqueeze(-2) - 3 * had, -1)
        torch.testing.assert_close(reading.weights[:, i : i + 1], weights)
        had = had + weights
    torch.testing.assert_close(reading.state.score, had)
    torch.testing.assert_close(reading.context, reading.weights @ values)


def test_state_is_taken_and_returned_and_not_changed(tensors):
    query, keys, values = tensors
    attention = Attention(score=Counting())
    memory = attention.prepare(keys, values)
    first = attention.read(query[:, :2], memory)
    kept = copy.deepcopy(first.state)
    again = [attention.read(query[:, 2:], memory, state=first.state) for _ in range(2)]
    torch.testing.assert_close(first.state.score, kept.score, rtol=0, atol=0)
    torch.testing.assert_close(again[0].context, again[1].context, rtol=0, atol=0)
    torch.testing.assert_close(again[0].context, attention(query, keys, values).context[:, 2:])


def test_a_stateful_score_with_no_queries(tensors):
    query, keys, values = tensors
    reading = Attention(score=Counting())(query[:, :0], keys, values)
    assert reading.context.shape == (BATCH, 0, VALUE)
    assert reading.weights.shape == (BATCH, 0, KEYS)


@pytest.mark.parametrize("mask", ["keys", "rows", "causal", "none left"])
def test_a_stateful_score_with_masks(tensors, mask):
    query, keys, values = tensors
    given = {
        "keys": torch.rand(KEYS) > 0.5,
        "rows": torch.rand(BATCH, QUERIES, KEYS) > 0.5,
        "causal": masks.causal(),
        "none left": masks.from_lengths([0, 5]),
    }[mask]
    reading = Attention(score=Counting())(query, keys, values, mask=given)
    allowed = masks.as_mask(given).tensor(QUERIES, KEYS).expand(BATCH, QUERIES, KEYS)
    assert (reading.weights[~allowed] == 0).all()
    total = reading.weights.sum(-1)
    torch.testing.assert_close(total, allowed.any(-1).double())


def test_sum_passes_state_to_its_stateful_members(tensors):
    query, keys, values = tensors
    dot = DotScore()
    square = query @ torch.randn(QUERY, KEY).double()
    reading = Attention(score=dot + Counting())(square, keys, values)
    memory_reading = Attention(score=SumScore(scores=[dot, Counting()]))(square, keys, values)
    torch.testing.assert_close(reading.context, memory_reading.context)
    assert reading.state.score[0] is None
    torch.testing.assert_close(reading.state.score[1], reading.weights.sum(-2, keepdim=True))


def test_defaults_follow_from_score_and_selection():
    class Wishing(ScaledDotScore):
        default_selection = "sparsemax"

    class Sampling(Softmax):
        def default_aggregation(self):
            return Sample()

    class PerChannel(DotScore):
        feature_wise = True

    assert type(Attention(score=Wishing()).selection) is Sparsemax
    assert type(Attention(score=DotScore()).selection) is Softmax
    assert type(Attention(score=DotScore()).aggregation) is Expectation
    assert type(Attention(score=DotScore(), selection=Sampling()).aggregation) is Sample
    assert type(Attention(score=PerChannel()).aggregation) is FeatureWise
    explicit = Attention(score=Wishing(), selection=Softmax(), aggregation=Expectation())
    assert type(explicit.selection) is Softmax


def test_hard_reading_picks_one_value(tensors):
    query, keys, values = tensors
    attention = Attention(
        score=AdditiveScore(query_dim=QUERY, key_dim=KEY, hidden_dim=17).double(), aggregation=Sample()
    )
    evaluated = attention.eval()(query, keys, values)
    best = evaluated.weights.argmax(-1)
    torch.testing.assert_close(evaluated.context, values.gather(1, best.unsqueeze(-1).expand(-1, -1, VALUE)))
    trained = attention.train()(query, keys, values)
    torch.testing.assert_close(trained.context, trained.selection.draw @ values)
    assert (trained.selection.draw.sum(-1) == 1).all()
    assert trained.selection.log_prob(trained.selection.draw).requires_grad


def test_joined_steps_keep_what_was_drawn(tensors):
    query, keys, values = tensors
    reading = Attention(score=Counting(), aggregation=Sample()).train()(query, keys, values)
    torch.testing.assert_close(reading.context, reading.selection.draw @ values)


@st.composite
def problems(draw):
    batch = draw(st.sampled_from([(), (1,), (2,), (2, 3)]))
    queries, keys = draw(st.integers(0, 5)), draw(st.integers(0, 7))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 10**6)))
    shape = draw(
        st.sampled_from(
            [
                (*batch, queries, keys),
                (*batch, 1, keys),
                (*batch, queries, 1),
                (queries, keys),
                (1, keys),
                (keys,),
                (1,) * len(batch) + (queries, keys),
            ]
        )
    )
    kind = draw(st.sampled_from(["some", "all", "none", "causal", "window", "lengths", "both"]))
    tensor = torch.rand(shape, generator=generator) > {"all": -1.0, "none": 2.0}.get(kind, 0.5)
    mask = {
        "causal": lambda: masks.causal(),
        "window": lambda: masks.window(draw(st.integers(0, 3))),
        "lengths": lambda: masks.from_lengths(torch.randint(0, 8, batch, generator=generator)),
        "both": lambda: masks.causal() & tensor,
    }.get(kind, lambda: tensor)()
    query = torch.randn(*batch, queries, QUERY, generator=generator, dtype=torch.float64)
    memory = torch.randn(*batch, keys, QUERY, generator=generator, dtype=torch.float64)
    return query, memory, mask


@given(problem=problems(), fused=st.booleans())
@settings(max_examples=200)
def test_any_mask_and_shape_gives_weights_of_mass_one_where_allowed(problem, fused):
    query, keys, mask = problem
    attention = Attention(score=ScaledDotScore(), selection=Softmax(temperature=1.0 if fused else 0.9))
    query.requires_grad_()
    reading = attention(query, keys, mask=mask)
    shape = (*query.shape[:-1], keys.shape[-2])
    allowed = masks.as_mask(mask).tensor(*shape[-2:]).expand(shape)
    assert reading.context.shape == query.shape
    assert reading.weights.shape == shape
    assert reading.context.isfinite().all()
    assert (reading.weights >= 0).all()
    assert (reading.weights[~allowed] == 0).all()
    torch.testing.assert_close(reading.weights.sum(-1), allowed.any(-1).double())
    torch.testing.assert_close(reading.context, reading.weights @ keys)
    (gradient,) = torch.autograd.grad(reading.context.sum(), query)
    assert gradient.isfinite().all()


@given(problem=problems())
@settings(max_examples=50)
def test_any_mask_and_shape_with_a_stateful_score(problem):
    query, keys, mask = problem
    reading = Attention(score=Counting())(query, keys, mask=mask)
    shape = (*query.shape[:-1], keys.shape[-2])
    allowed = masks.as_mask(mask).tensor(*shape[-2:]).expand(shape)
    assert reading.weights.shape == shape
    torch.testing.assert_close(reading.weights.sum(-1), allowed.any(-1).double())


def test_types_of_the_public_values(attention, tensors):
    memory = attention.prepare(*tensors[1:])
    assert isinstance(memory, Memory)
    assert isinstance(attention.read(tensors[0], memory), Reading)
    with pytest.raises(AttributeError):
        memory.values = None


def test_distributions_of_other_kinds_join():
    parts = [Bernoulli(torch.rand(2, 1, 5)), Bernoulli(torch.rand(2, 3, 5))]
    joined = Bernoulli.cat(parts)
    assert torch.equal(joined.probs, torch.cat([part.probs for part in parts], dim=1))
    assert Bernoulli.cat(parts[:1]) is parts[0]


def test_bernoulli_draws_subsets():
    distribution = Bernoulli(torch.tensor([[0.1, 0.9, 1.0, 0.0]]), training=True)
    assert distribution.mode.tolist() == [[0, 1, 1, 0]]
    assert distribution.draw is distribution.draw
    assert distribution.sample(11).shape == (11, 1, 4)
    assert (distribution.sample(11)[..., 2] == 1).all()
    assert (distribution.sample(11)[..., 3] == 0).all()
    assert distribution.log_prob(torch.tensor([[0.0, 1.0, 0.0, 0.0]])).item() == -torch.inf
    expected = torch.tensor([0.1, 0.9]).log().sum()
    torch.testing.assert_close(distribution.log_prob(torch.tensor([[1.0, 1.0, 1.0, 0.0]])), expected.unsqueeze(0))


def test_defective_categorical_may_pick_nothing():
    distribution = Categorical(torch.tensor([[0.25, 0.15]]), defective=True)
    assert distribution.mode.tolist() == [[0, 0]]
    torch.testing.assert_close(distribution.log_prob(torch.zeros(1, 2)), torch.tensor([0.6]).log())
    outcomes = torch.tensor([0.25, 0.15, 0.6])
    torch.testing.assert_close(distribution.entropy(), -(outcomes * outcomes.log()).sum().unsqueeze(0))


def test_log_prob_from_logits_is_exact_where_probabilities_vanish():
    logits = torch.tensor([[0.0, -200.0]])
    distribution = Categorical(torch.tensor([[1.0, 1e-40]]), logits=logits)
    torch.testing.assert_close(distribution.log_prob(torch.tensor([[0.0, 1.0]])), torch.tensor([-200.0]))


def test_trees_need_all_queries_at_once():
    with pytest.raises(ValueError, match="ProjectiveTree needs all queries at once, but Counting"):
        Attention(score=Counting(), selection=ProjectiveTree())
    vocab = {"source_vocab": 9, "target_vocab": 9}
    of_steps = StepChain(following=ScaledDotScore())
    for build in (
        lambda: RNNSearch(**vocab, selection="projective_tree"),
        lambda: Luong(**vocab, selection=of_steps),
        lambda: Transformer(**vocab, selection="projective_tree"),
        lambda: Transformer(**vocab, selection=of_steps),
        lambda: Transformer(**vocab, cross_selection="non_projective_tree"),
        lambda: Transformer(**vocab, cross_selection=of_steps),
    ):
        with pytest.raises(ValueError, match="needs all queries at once, but a decoder"):
            build()


def test_pairs_are_of_the_values_of_one_head():
    attention = Attention(score=ScaledDotScore(), selection=LinearChain(), aggregation=Pairwise(value_dim=8))
    layer = saccade.MultiHead(attention=attention, num_heads=2, query_dim=8)
    with pytest.raises(ValueError, match="4 features, but Pairwise was built with value_dim=8"):
        layer(torch.randn(2, 5, 8), torch.randn(2, 5, 8))
