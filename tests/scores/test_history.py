"""Scores with a history: each against its paper's equations, one step and one key at a time."""

import math

import pytest
import torch
from torch.utils import _pytree as pytree

from saccade import Attention, masks
from saccade.history import (
    ConvolvedWeights,
    Coverage,
    CoverageEmbedding,
    LinguisticCoverage,
    LocalFertility,
    Markov,
    NeuralCoverage,
    PositionFeature,
)
from saccade.scores import (
    AdditiveScore,
    CohnScore,
    CoverageEmbeddingScore,
    CoverageScore,
    HistoryScore,
    LinguisticCoverageScore,
    LocationAwareScore,
    NeuralCoverageScore,
    Score,
)

from .literal import BATCH, HIDDEN, KEY_DIM, KEYS, QUERY_DIM, assert_near, random_inputs, randomised

STEPS = 5
DIMS = {"query_dim": QUERY_DIM, "key_dim": KEY_DIM, "hidden_dim": HIDDEN}


def read_literally(score, query, keys, feature, after):
    """Weights (steps, keys) of one row: e_ij = v.tanh(W q_i + U k_j + F phi_ij + b), softmax, then `after`.

    feature(i, j) gives [phi_ij] for each of the features; after(i, weights) is told what was read.
    """
    rows = []
    bias = 0.0 if score.key_proj.bias is None else score.key_proj.bias
    for i, q in enumerate(query):
        energies = []
        for j, k in enumerate(keys):
            inside = score.query_proj.weight @ q + score.key_proj.weight @ k + bias
            for proj, phi in zip(score.feature_projs, feature(i, j), strict=True):
                inside = inside + proj.weight @ phi
            energies.append(score.hidden_proj.weight[0] @ torch.tanh(inside))
        rows.append(torch.softmax(torch.stack(energies), 0))
        after(i, rows[-1])
    return torch.stack(rows)


def zeros(*shape):
    return torch.zeros(*shape, dtype=torch.float64)


def at(weights, j):
    """The weight of key j; zero beyond the ends."""
    return weights[j] if 0 <= j < len(weights) else weights.new_zeros(())


def around(weights, j):
    return torch.stack([at(weights, j - 1), at(weights, j), at(weights, j + 1)])


def literal_location_aware(score, query, keys):
    filters = score.features[0].conv.weight[:, 0]
    half = filters.shape[1] // 2
    previous = zeros(len(keys))
    previous[0] = 1.0

    def feature(i, j):
        return [sum(filters[:, half + d] * at(previous, j + d) for d in range(-half, half + 1))]

    def after(i, weights):
        nonlocal previous
        previous = weights

    return read_literally(score, query, keys, feature, after)


def literal_coverage(score, query, keys):
    covered = zeros(len(keys))

    def after(i, weights):
        nonlocal covered
        covered = covered + weights

    return read_literally(score, query, keys, lambda i, j: [covered[j : j + 1]], after)


def literal_linguistic_coverage(score, query, keys):
    feature_module = score.features[0]
    covered = zeros(len(keys))
    fertility = [
        (feature_module.max_fertility * torch.sigmoid(feature_module.fertility_proj.weight[0] @ k)).clamp(min=0.05)
        for k in keys
    ]

    def after(i, weights):
        nonlocal covered
        covered = covered + weights / torch.stack(fertility)

    return read_literally(score, query, keys, lambda i, j: [covered[j : j + 1]], after)


def literal_gru(gru, inputs, previous):
    dim = gru.dim
    u = gru.gate_proj.weight
    update = torch.sigmoid(inputs[:dim] + u[:dim] @ previous)
    reset = torch.sigmoid(inputs[dim : 2 * dim] + u[dim:] @ previous)
    candidate = torch.tanh(inputs[2 * dim :] + gru.candidate_proj.weight @ (reset * previous))
    return (1 - update) * previous + update * candidate


def literal_neural_coverage(score, query, keys):
    module = score.features[0]
    w = torch.cat([module.weight_proj.weight, module.key_proj.weight, module.query_proj.weight], dim=1)
    covered = [zeros(module.feature_dim) for _ in keys]

    def after(i, weights):
        for j, k in enumerate(keys):
            inputs = w @ torch.cat([weights[j : j + 1], k, query[i]]) + module.key_proj.bias
            covered[j] = literal_gru(module.update, inputs, covered[j])

    return read_literally(score, query, keys, lambda i, j: [covered[j]], after)


def literal_cohn(score, query, keys):
    history = []

    def feature(i, j):
        logs = [math.log(1 + i), math.log(1 + j), math.log(1 + len(keys))]
        previous = history[-1] if history else zeros(len(keys))
        total = sum(history, zeros(len(keys)))
        return [torch.tensor(logs, dtype=torch.float64), around(previous, j), around(total, j)]

    return read_literally(score, query, keys, feature, lambda i, weights: history.append(weights))


def literal_coverage_embedding(score, query, keys):
    module = score.features[0]
    embeddings = [module.key_proj.weight @ k for k in keys]
    history = []

    def feature(i, j):
        # Step i sees c_{i-1}, whose last update comes from p_{i-1} and the output that q_i has read.
        c = embeddings[j]
        for step, weights in enumerate(history, start=1):
            if module.gru is None:
                c = c - weights[j] * (module.query_proj.weight @ query[step])
            else:
                w = torch.cat([module.query_proj.weight, module.weight_proj.weight], dim=1)
                inputs = w @ torch.cat([query[step], weights[j : j + 1]]) + module.query_proj.bias
                c = literal_gru(module.gru, inputs, c)
        return [c]

    return read_literally(score, query, keys, feature, lambda i, weights: history.append(weights))


SCORES = {
    "location_aware": (lambda: LocationAwareScore(**DIMS, num_filters=3, width=5), literal_location_aware),
    "location_aware_wide": (lambda: LocationAwareScore(**DIMS), literal_location_aware),
    "coverage": (lambda: CoverageScore(**DIMS), literal_coverage),
    "linguistic_coverage": (lambda: LinguisticCoverageScore(**DIMS), literal_linguistic_coverage),
    "neural_coverage": (lambda: NeuralCoverageScore(**DIMS, feature_dim=3), literal_neural_coverage),
    "cohn": (lambda: CohnScore(**DIMS), literal_cohn),
    "coverage_embedding_gru": (lambda: CoverageEmbeddingScore(**DIMS, feature_dim=3), literal_coverage_embedding),
    "coverage_embedding_subtraction": (
        lambda: CoverageEmbeddingScore(**DIMS, feature_dim=3, update="subtraction"),
        literal_coverage_embedding,
    ),
}
every_score = pytest.mark.parametrize("name", SCORES)


def make(name):
    return randomised(SCORES[name][0]())


@every_score
def test_equations(name):
    score = make(name)
    query, keys = random_inputs(queries=STEPS)
    reading = Attention(score=score)(query, keys)
    for b in range(BATCH):
        assert_near(reading.weights[b], SCORES[name][1](score, query[b], keys[b]))
    assert_near(reading.context, reading.weights @ keys)


@every_score
def test_masked_keys_are_as_if_they_were_not_there(name):
    score = make(name)
    query, keys = random_inputs(queries=STEPS)
    lengths = [4, KEYS]
    reading = Attention(score=score)(query, keys, mask=masks.from_lengths(lengths))
    for b, length in enumerate(lengths):
        assert_near(reading.weights[b, :, :length], SCORES[name][1](score, query[b], keys[b, :length]))
        assert (reading.weights[b, :, length:] == 0).all()


@every_score
def test_the_state_carries_over_to_the_next_reading(name):
    attention = Attention(score=make(name))
    query, keys = random_inputs(queries=STEPS)
    memory = attention.prepare(keys, mask=masks.from_lengths([4, KEYS]))
    at_once = attention.read(query, memory)
    first = attention.read(query[:, :3], memory)
    second = attention.read(query[:, 3:], memory, state=first.state)
    assert_near(torch.cat([first.weights, second.weights], dim=1), at_once.weights)
    assert_near(torch.cat([first.context, second.context], dim=1), at_once.context)
    ours, theirs = (pytree.tree_leaves(state) for state in (second.state, at_once.state))
    assert len(ours) == len(theirs) > 0
    for a, b in zip(ours, theirs, strict=True):
        assert_near(a, b)


@every_score
def test_gradients_flow_through_time(name):
    score = make(name)
    query, keys = random_inputs(queries=STEPS)
    query.requires_grad_()
    last = Attention(score=score)(query, keys).weights[:, -1]
    last[:, 0].sum().backward()
    assert (query.grad.abs().sum(-1)[:, 0] > 0).all(), "the last weights must depend on the first query"
    for parameter in score.feature_projs.parameters():
        assert parameter.grad.abs().sum() > 0


@pytest.mark.parametrize("name", [name for name in SCORES if name != "location_aware_wide"])
def test_gradcheck_over_three_steps(name):
    attention = Attention(score=make(name))
    query, keys = random_inputs(queries=3, keys=3)
    mask = masks.from_lengths([2, 3])

    def read(query, keys, *_):
        return attention(query, keys, mask=mask).context

    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.mul_(0.3)
    inputs = (query.requires_grad_(), keys.requires_grad_(), *attention.parameters())
    assert torch.autograd.gradcheck(read, inputs, fast_mode=True)


@every_score
def test_states_can_be_reordered_by_rows(name):
    """As beam search does: what each row remembers goes with it."""
    attention = Attention(score=make(name))
    query, keys = random_inputs(queries=STEPS)
    memory = attention.prepare(keys)
    rows = torch.tensor([1, 1, 0])
    state = attention.read(query[:, :3], memory).state
    state = state._replace(score=pytree.tree_map(lambda leaf: leaf[rows], state.score))
    picked = attention.read(query[rows, 3:], memory.index(rows), state=state)
    whole = attention.read(query, memory)
    assert_near(picked.weights, whole.weights[rows, 3:])


@every_score
def test_a_row_without_any_key(name):
    attention = Attention(score=make(name))
    query, keys = random_inputs(queries=STEPS)
    reading = attention(query.requires_grad_(), keys.requires_grad_(), mask=masks.from_lengths([0, KEYS]))
    assert (reading.context[0] == 0).all()
    assert reading.context.isfinite().all()
    reading.context.sum().backward()
    assert all(p.grad.isfinite().all() for p in attention.parameters() if p.grad is not None)
    assert query.grad.isfinite().all()
    assert keys.grad.isfinite().all()


@every_score
def test_heads_are_a_batch_dimension(name):
    attention = Attention(score=make(name))
    query, keys = torch.randn(2, 3, STEPS, QUERY_DIM).double(), torch.randn(2, 3, KEYS, KEY_DIM).double()
    mask = masks.from_lengths(torch.tensor([[4], [KEYS]]))
    weights = attention(query, keys, mask=mask).weights
    for h in range(3):
        alone = attention(query[:, h], keys[:, h], mask=masks.from_lengths([4, KEYS])).weights
        assert_near(weights[:, h], alone)


@pytest.mark.parametrize("flag", ["position", "markov", "fertility"])
def test_cohn_biases_can_be_switched(flag):
    kinds = {"position": PositionFeature, "markov": Markov, "fertility": LocalFertility}
    alone = CohnScore(**DIMS, **{name: name == flag for name in kinds})
    assert [type(f) for f in alone.features] == [kinds[flag]]
    without = CohnScore(**DIMS, **{flag: False})
    assert kinds[flag] not in [type(f) for f in without.features]
    assert len(without.features) == 2


def test_features_compose():
    features = [
        ConvolvedWeights(num_filters=3, width=5),
        Coverage(),
        LinguisticCoverage(key_dim=KEY_DIM),
        NeuralCoverage(query_dim=QUERY_DIM, key_dim=KEY_DIM, feature_dim=2),
        CoverageEmbedding(query_dim=QUERY_DIM, key_dim=KEY_DIM, feature_dim=2),
        PositionFeature(),
        Markov(),
        LocalFertility(),
    ]
    score = randomised(HistoryScore(**DIMS, features=features))
    query, keys = random_inputs(queries=STEPS)
    reading = Attention(score=score)(query, keys)
    assert len(reading.state.score) == len(features)
    # The state of each feature is what it would be by itself, given the weights that were read.
    for feature, state in zip(features, reading.state.score, strict=True):
        kept = feature.prepare(keys)
        alone = feature.begin(query, kept)
        for i in range(STEPS):
            alone = feature.advance(alone, reading.weights[:, i : i + 1], query[:, i : i + 1], kept)
        for a, b in zip(alone, state, strict=True):
            assert_near(a, b)


def test_without_weight_on_its_features_it_is_additive():
    score = randomised(CohnScore(**DIMS))
    plain = AdditiveScore(**DIMS).double()
    plain.load_state_dict(
        {k: v for k, v in score.state_dict().items() if k.split(".")[0] in dict(plain.named_modules())}
    )
    for proj in score.feature_projs:
        torch.nn.init.zeros_(proj.weight)
    query, keys = random_inputs(queries=STEPS)
    assert_near(Attention(score=score)(query, keys).context, Attention(score=plain)(query, keys).context)


def test_no_queries():
    score = make("coverage_embedding_gru")
    query, keys = random_inputs(queries=0)
    reading = Attention(score=score)(query, keys)
    assert reading.weights.shape == (BATCH, 0, KEYS)
    assert score(query, keys).shape == (BATCH, 0, KEYS)


def test_a_memory_that_has_grown_needs_a_new_state():
    attention = Attention(score=make("coverage"))
    query, keys = random_inputs(queries=STEPS)
    memory = attention.prepare(keys[:, :4])
    state = attention.read(query, memory).state
    grown = memory.append(keys[:, 4:])
    with pytest.raises(ValueError, match="state was started with 4 keys, but the memory has 7"):
        attention.read(query, grown, state=state)
    assert_near(attention.read(query, grown).weights, attention(query, keys).weights)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="features is empty"):
        HistoryScore(**DIMS, features=[])
    with pytest.raises(ValueError, match="features is empty"):
        CohnScore(**DIMS, position=False, markov=False, fertility=False)
    with pytest.raises(TypeError, match="features must be HistoryFeatures, got 'coverage'"):
        HistoryScore(**DIMS, features=["coverage"])
    with pytest.raises(ValueError, match="LinguisticCoverage was built with key_dim=4, the score with key_dim=11"):
        HistoryScore(**DIMS, features=[LinguisticCoverage(key_dim=4)])
    query, keys = (x.float() for x in random_inputs())
    with pytest.raises(ValueError, match=r"query .* has 4 features"):
        CoverageScore(**DIMS)(query[..., :4], keys)
    with pytest.raises(ValueError, match=r"keys .* has 4 features"):
        CoverageScore(**DIMS)(query, keys[..., :4])


def test_every_named_score_is_a_history_score():
    for name in SCORES:
        score: Score = make(name)
        assert isinstance(score, HistoryScore)
        assert score.stateful
        assert not score.pairwise


@every_score
def test_the_state_of_another_batch_is_refused(name):
    attention = Attention(score=make(name))
    query, keys = random_inputs(queries=STEPS)
    state = attention(query, keys).state
    for other in (lambda x: x[:1].expand(5, -1, -1), lambda x: x[:1], lambda x: x[0]):
        with pytest.raises(ValueError, match="pass the state of the previous reading of the same memory"):
            attention(other(query), other(keys), state=state)


@every_score
def test_rows_that_share_a_memory_have_states_of_their_own(name):
    score = make(name)
    query, keys = random_inputs(queries=2)
    prepared = score.prepare(keys[:1])
    weights = torch.softmax(score(query[:, :1], keys), -1)
    state = score.advance(score.begin(query[:, :1], prepared), weights, query[:, :1], prepared)
    shared = score.compare(query[:, 1:], prepared, state)
    assert shared.shape == (BATCH, 1, KEYS)
    own = score.prepare(keys[:1].expand_as(keys))
    assert_near(
        shared,
        score.compare(query[:, 1:], own, score.advance(score.begin(query[:, :1], own), weights, query[:, :1], own)),
    )
