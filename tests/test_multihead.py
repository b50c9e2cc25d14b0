"""MultiHead: heads are a batch dimension."""

import pytest
import torch
from torch.nn import functional as F

from saccade import Attention, MultiHead, masks
from saccade.aggregations import ConcatPicks
from saccade.scores import AdditiveScore, CoverageScore, ScaledDotScore
from saccade.selections import Sparsemax

BATCH, HEADS, QUERIES, KEYS = 2, 3, 5, 13
QUERY, KEY, VALUE, HEAD, VALUE_HEAD, OUTPUT = 7, 11, 17, 19, 23, 29


def build(attention=None, **arguments):
    sizes = {
        "num_heads": HEADS,
        "query_dim": QUERY,
        "key_dim": KEY,
        "value_dim": VALUE,
        "head_dim": HEAD,
        "value_head_dim": VALUE_HEAD,
        "output_dim": OUTPUT,
    }
    module = MultiHead(attention=attention or Attention(score=ScaledDotScore()), **{**sizes, **arguments}).double()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return module.eval()


@pytest.fixture
def tensors():
    made = [torch.randn(BATCH, n, d) for n, d in ((QUERIES, QUERY), (KEYS, KEY), (KEYS, VALUE))]
    return [tensor.double() for tensor in made]


def attentions():
    return {
        "scaled dot": Attention(score=ScaledDotScore()),
        "additive": Attention(score=AdditiveScore(query_dim=HEAD, key_dim=HEAD, hidden_dim=31)),
        "sparsemax": Attention(score=ScaledDotScore(), selection=Sparsemax()),
        "coverage": Attention(score=CoverageScore(query_dim=HEAD, key_dim=HEAD, hidden_dim=31)),
        "picks": Attention(score=ScaledDotScore(), aggregation=ConcatPicks(k=2)),
    }


@pytest.mark.parametrize("kind", attentions())
@pytest.mark.parametrize("key_heads", [3, 1])
def test_equals_single_heads_side_by_side(tensors, kind, key_heads):
    module = build(attentions()[kind], num_key_heads=key_heads)
    query, keys, values = tensors
    mask = torch.rand(BATCH, QUERIES, KEYS) > 0.3
    reading = module(query, keys, values, mask=mask)
    contexts = []
    for head in range(HEADS):
        shared = head * key_heads // HEADS

        def project(proj, tensor, index, size):
            rows = slice(index * size, (index + 1) * size)
            return F.linear(tensor, proj.weight[rows], proj.bias[rows])

        single = module.attention(
            project(module.query_proj, query, head, HEAD),
            project(module.key_proj, keys, shared, HEAD),
            project(module.value_proj, values, shared, VALUE_HEAD),
            mask=mask,
        )
        torch.testing.assert_close(reading.weights[:, head], single.weights)
        contexts.append(single.context)
    torch.testing.assert_close(reading.context, module.output_proj(torch.cat(contexts, dim=-1)))
    assert reading.weights.shape == (BATCH, HEADS, QUERIES, KEYS)
    assert reading.context.shape == (BATCH, QUERIES, OUTPUT)


@pytest.mark.parametrize("key_heads", [1, 2, 6])
def test_grouped_heads_share_keys(tensors, key_heads):
    module = build(num_heads=6, num_key_heads=key_heads)
    assert module.key_proj.out_features == key_heads * HEAD
    assert module.value_proj.out_features == key_heads * VALUE_HEAD
    full = build(num_heads=6)
    full.load_state_dict(
        module.state_dict()
        | {
            name: module.state_dict()[name]
            .unflatten(0, (key_heads, -1))
            .repeat_interleave(6 // key_heads, dim=0)
            .flatten(0, 1)
            for name in ("key_proj.weight", "key_proj.bias", "value_proj.weight", "value_proj.bias")
        }
    )
    ours, theirs = module(*tensors), full(*tensors)
    torch.testing.assert_close(ours.context, theirs.context)
    torch.testing.assert_close(ours.weights, theirs.weights)


def test_grouped_memory_keeps_only_the_shared_heads(tensors):
    module = build(num_heads=6, num_key_heads=2)
    memory = module.prepare(*tensors[1:])
    assert memory.values.shape == (BATCH, 2, KEYS, VALUE_HEAD)
    assert memory.prepared[0].shape == (BATCH, 2, KEYS, HEAD)


def test_default_sizes():
    module = MultiHead(attention=Attention(score=ScaledDotScore()), num_heads=4, query_dim=20)
    x = torch.randn(2, 5, 20)
    reading = module(x)
    assert reading.context.shape == (2, 5, 20)
    assert reading.weights.shape == (2, 4, 5, 5)
    assert sum(p.numel() for p in module.parameters()) == 4 * (20 * 20 + 20)
    assert (module.query_proj.bias == 0).all()
    bare = MultiHead(attention=Attention(score=ScaledDotScore()), num_heads=4, query_dim=20, bias=False)
    assert sum(p.numel() for p in bare.parameters()) == 4 * 20 * 20


def test_values_default_to_keys_and_keys_to_the_query():
    module = build(query_dim=QUERY, key_dim=QUERY, value_dim=QUERY)
    x = torch.randn(BATCH, QUERIES, QUERY).double()
    torch.testing.assert_close(module(x).context, module(x, x, x).context)


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)], ids=len)
def test_any_number_of_batch_dimensions(batch):
    module = build()
    query, keys = torch.randn(*batch, QUERIES, QUERY).double(), torch.randn(*batch, KEYS, KEY).double()
    values = torch.randn(*batch, KEYS, VALUE).double()
    mask = torch.rand(*batch, QUERIES, KEYS) > 0.3
    reading = module(query, keys, values, mask=mask)
    assert reading.weights.shape == (*batch, HEADS, QUERIES, KEYS)
    flat = module(
        query.reshape(-1, QUERIES, QUERY),
        keys.reshape(-1, KEYS, KEY),
        values.reshape(-1, KEYS, VALUE),
        mask=mask.reshape(-1, QUERIES, KEYS),
    )
    torch.testing.assert_close(reading.context.reshape(flat.context.shape), flat.context)


def test_key_order_does_not_matter(tensors):
    query, keys, values = tensors
    module = build()
    order = torch.randperm(KEYS)
    torch.testing.assert_close(
        module(query, keys[:, order], values[:, order]).context, module(query, keys, values).context
    )


MASKS = {
    "keys": lambda: torch.rand(KEYS) > 0.3,
    "rows": lambda: torch.rand(QUERIES, KEYS) > 0.3,
    "over keys": lambda: torch.rand(BATCH, 1, KEYS) > 0.3,
    "full": lambda: torch.rand(BATCH, QUERIES, KEYS) > 0.3,
    "lengths": lambda: masks.from_lengths([5, 0]),
    "causal": lambda: masks.causal(),
    "combined": lambda: masks.from_lengths([5, 13]) & masks.causal() & (torch.rand(BATCH, QUERIES, KEYS) > 0.3),
}


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("attention", ["scaled dot", "additive"])
def test_a_mask_holds_for_every_head(tensors, kind, attention):
    module = build(attentions()[attention])
    mask = MASKS[kind]()
    reading = module(*tensors, mask=mask)
    allowed = masks.as_mask(mask).tensor(QUERIES, KEYS).expand(BATCH, QUERIES, KEYS)
    by_hand = allowed.unsqueeze(1).expand(BATCH, HEADS, QUERIES, KEYS)
    assert (reading.weights[~by_hand] == 0).all()
    torch.testing.assert_close(reading.weights.sum(-1), by_hand.any(-1).double())
    torch.testing.assert_close(module(*tensors, mask=by_hand).context, reading.context)


def test_a_mask_may_differ_by_head(tensors):
    module = build()
    mask = torch.rand(BATCH, HEADS, QUERIES, KEYS) > 0.3
    reading = module(*tensors, mask=mask)
    assert (reading.weights[~mask] == 0).all()
    assert (reading.weights[mask] > 0).all()
    shared = torch.rand(1, HEADS, 1, KEYS) > 0.3
    assert (module(*tensors, mask=shared).weights[~shared.expand(BATCH, HEADS, QUERIES, KEYS)] == 0).all()
    # Without a batch dimension three dimensions are (heads, queries, keys).
    single = module(*(tensor[0] for tensor in tensors), mask=mask[0])
    torch.testing.assert_close(single.weights, reading.weights[0])


@pytest.mark.parametrize("attention", ["scaled dot", "additive", "sparsemax"])
@pytest.mark.parametrize("key_heads", [3, 1])
def test_decoding_with_a_growing_memory_is_causal_attention(attention, key_heads):
    module = build(attentions()[attention], key_dim=QUERY, value_dim=QUERY, num_key_heads=key_heads)
    x = torch.randn(BATCH, KEYS, QUERY).double()
    whole = module(x, mask=masks.causal())
    memory = module.prepare(x[:, :0], mask=masks.causal())
    steps = []
    for i in range(KEYS):
        memory = memory.append(x[:, i : i + 1])
        steps.append(module.read(x[:, i : i + 1], memory).context)
    assert len(memory) == KEYS
    torch.testing.assert_close(torch.cat(steps, dim=1), whole.context)
    # Several at once at the end: the prefix is read, then the rest in one go.
    memory = module.prepare(x[:, :5], mask=masks.causal()).append(x[:, 5:])
    torch.testing.assert_close(module.read(x[:, 5:], memory).context, whole.context[:, 5:])


def test_padded_prefixes_stay_masked_as_the_memory_grows():
    module = build(key_dim=QUERY, value_dim=QUERY)
    x = torch.randn(BATCH, KEYS, QUERY).double()
    memory = module.prepare(x[:, :5], mask=masks.from_lengths([5, 2]))
    memory = memory.append(x[:, 5:6]).append(x[:, 6:8], mask=torch.tensor([[[True, True]], [[True, False]]]))
    reading = module.read(x[:, 7:8], memory)
    assert (reading.weights[0] > 0).all()
    seen = (reading.weights[1] > 0).all(0)[0].tolist()
    assert seen == [True, True, False, False, False, True, True, False]


def test_cross_attention_memory_is_written_once(tensors, monkeypatch):
    query, keys, values = tensors
    module = build()
    whole = module(query, keys, values)
    memory = module.prepare(keys, values)

    def refuse(*_):
        raise AssertionError("the keys were projected again")

    monkeypatch.setattr(module.key_proj, "forward", refuse)
    monkeypatch.setattr(module.value_proj, "forward", refuse)
    steps = [module.read(query[:, i : i + 1], memory).context for i in range(QUERIES)]
    torch.testing.assert_close(torch.cat(steps, dim=1), whole.context)


def test_index_chooses_rows_of_the_cache(tensors):
    query, keys, values = tensors
    module = build(num_heads=6, num_key_heads=2)
    memory = module.prepare(keys, values, mask=masks.from_lengths([5, 13]) & (torch.rand(QUERIES, KEYS) > 0.3))
    rows = torch.tensor([1, 1, 0])
    torch.testing.assert_close(
        module.read(query[rows], memory.index(rows)).context, module.read(query, memory).context[rows]
    )


def test_state_goes_through(tensors):
    query, keys, values = tensors
    module = build(attentions()["coverage"])
    memory = module.prepare(keys, values)
    whole = module.read(query, memory)
    first = module.read(query[:, :2], memory)
    rest = module.read(query[:, 2:], memory, state=first.state)
    torch.testing.assert_close(torch.cat([first.context, rest.context], dim=1), whole.context)
    fresh = module.read(query[:, 2:], memory)
    assert not torch.allclose(fresh.context, rest.context)


def test_weights_are_those_before_dropout(tensors):
    module = build(Attention(score=ScaledDotScore(), dropout=0.5))
    evaluated = module(*tensors)
    trained = module.train()(*tensors)
    torch.testing.assert_close(trained.weights, evaluated.weights)
    assert not torch.allclose(trained.context, evaluated.context)


def test_fused_heads_compute_weights_only_when_looked_at(tensors, monkeypatch):
    module = build()
    reading = module(*tensors)
    before = reading.context.clone()
    assert "not computed yet" in repr(reading)
    first = reading.weights
    assert "not computed yet" not in repr(reading)
    assert reading.weights is first
    torch.testing.assert_close(reading.context, before, rtol=0, atol=0)


def test_gradients_reach_every_parameter(tensors):
    for kind, attention in attentions().items():
        module = build(attention)
        module(*tensors).context.square().sum().backward()
        for name, parameter in module.named_parameters():
            assert parameter.grad is not None, (kind, name)
            assert parameter.grad.isfinite().all(), (kind, name)
            # The softmax does not see what is added to all scores of a row.
            if name != "key_proj.bias":
                assert parameter.grad.abs().sum() > 0, (kind, name)


def test_gradcheck():
    module = MultiHead(attention=Attention(score=ScaledDotScore()), num_heads=2, query_dim=4, key_dim=3, value_dim=5)
    module = module.double()
    given = [torch.randn(2, n, d).double().requires_grad_() for n, d in ((2, 4), (5, 3), (5, 5))]
    mask = masks.from_lengths([0, 3])

    def run(query, keys, values, *_):
        reading = module(query, keys, values, mask=mask)
        return reading.context, reading.weights

    assert torch.autograd.gradcheck(run, (*given, *module.parameters()))
