"""Masks: what they allow, how they combine, what they refuse."""

import copy
import pickle

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from saccade import Attention, masks
from saccade.scores import AdditiveScore, ScaledDotScore

BATCH, QUERIES, KEYS = 2, 5, 7

sizes = st.integers(min_value=0, max_value=7)
offsets = st.none() | st.integers(min_value=-3, max_value=9)


@given(queries=sizes, keys=sizes, offset=offsets)
def test_causal_allows_keys_up_to_the_query(queries, keys, offset):
    allowed = masks.causal(offset=offset).tensor(queries, keys)
    shift = keys - queries if offset is None else offset
    assert allowed.shape == (queries, keys)
    assert allowed.tolist() == [[j <= i + shift for j in range(keys)] for i in range(queries)]


@given(queries=sizes, keys=sizes, left=sizes, right=st.none() | sizes, offset=offsets)
def test_window_allows_keys_near_the_query(queries, keys, left, right, offset):
    allowed = masks.window(left, right, offset=offset).tensor(queries, keys)
    shift = keys - queries if offset is None else offset
    after = left if right is None else right
    assert allowed.tolist() == [
        [i + shift - left <= j <= i + shift + after for j in range(keys)] for i in range(queries)
    ]
    some = allowed.any(0).nonzero().flatten().tolist()
    if some:
        assert masks.window(left, right, offset=offset).span(queries, keys) == slice(some[0], some[-1] + 1)


@given(lengths=st.lists(sizes, max_size=3), keys=sizes)
def test_lengths_allow_the_first_keys(lengths, keys):
    allowed = masks.from_lengths(torch.tensor(lengths, dtype=torch.long)).tensor(QUERIES, keys)
    assert allowed.shape == (len(lengths), 1, keys)
    assert allowed[:, 0].tolist() == [[j < length for j in range(keys)] for length in lengths]


def test_lengths_with_two_batch_dimensions():
    lengths = torch.tensor([[1, 2, 3], [4, 5, 0]])
    assert torch.equal(masks.from_lengths(lengths).tensor(QUERIES, KEYS).sum((-1, -2)), lengths)


def test_one_query_of_a_growing_memory_sees_all_of_it():
    assert masks.causal().tensor(1, KEYS).all()
    assert masks.window(2).tensor(1, KEYS).tolist() == [[False] * 4 + [True] * 3]


@st.composite
def predicates(draw):
    """A mask of this module or a tensor, beside the tensor it stands for."""
    kind = draw(st.sampled_from(["causal", "window", "lengths", "rows", "keys", "full"]))
    if kind == "causal":
        mask = masks.causal(offset=draw(offsets))
    elif kind == "window":
        mask = masks.window(draw(sizes), draw(sizes), offset=draw(offsets))
    elif kind == "lengths":
        mask = masks.from_lengths(draw(st.lists(sizes, min_size=BATCH, max_size=BATCH)))
    else:
        shape = {"rows": (QUERIES, KEYS), "keys": (BATCH, 1, KEYS), "full": (BATCH, QUERIES, KEYS)}[kind]
        bits = draw(st.integers(0, 2**31))
        mask = torch.rand(shape, generator=torch.Generator().manual_seed(bits)) > 0.5
        return mask, mask
    return mask, mask.tensor(QUERIES, KEYS)


@given(parts=st.lists(predicates(), min_size=1, max_size=4), operators=st.lists(st.sampled_from("&|~"), max_size=6))
def test_masks_combine_as_their_tensors_do(parts, operators):
    mask, tensor = parts[0]
    mask = masks.as_mask(mask)
    rest = iter(parts[1:])
    for operator in operators:
        if operator == "~":
            mask, tensor = ~mask, ~tensor
            continue
        other = next(rest, None)
        if other is None:
            break
        if operator == "&":
            mask, tensor = mask & other[0], tensor & other[1]
        else:
            mask, tensor = mask | other[0], tensor | other[1]
    expected = tensor.expand(BATCH, QUERIES, KEYS)
    assert torch.equal(mask.tensor(QUERIES, KEYS).expand(BATCH, QUERIES, KEYS), expected)
    part = slice(2, 5)
    assert torch.equal(mask.block(QUERIES, KEYS, part).expand(BATCH, QUERIES, 3), expected[..., part])
    rows = torch.tensor([1, 1, 0])
    assert torch.equal(mask.index(rows, 3).tensor(QUERIES, KEYS).expand(3, QUERIES, KEYS), expected[rows])
    heads = mask.across_heads(3).tensor(QUERIES, KEYS)
    assert torch.equal(heads.expand(BATCH, 3, QUERIES, KEYS), expected.unsqueeze(1).expand(-1, 3, -1, -1))
    over_keys = mask.over_keys(KEYS)
    if over_keys is not None:  # it may rule out only keys that no query may attend
        assert not (expected & ~over_keys.expand(BATCH, KEYS).unsqueeze(-2)).any()
    if not mask.depends_on_query:
        assert torch.equal(expected, expected[:, :1].expand_as(expected))
        assert torch.equal(over_keys.expand(BATCH, KEYS), expected[:, 0])
    if mask.prefix is not None:
        assert torch.equal(masks.from_lengths(mask.prefix).tensor(1, KEYS).expand_as(expected), expected)
    span = mask.span(QUERIES, KEYS)
    assert 0 <= span.start <= span.stop <= KEYS
    assert not expected[..., : span.start].any()
    assert not expected[..., span.stop :].any()
    if mask.is_causal(QUERIES, KEYS):
        assert torch.equal(expected, torch.ones(QUERIES, KEYS, dtype=torch.bool).tril().expand_as(expected))


def test_a_tensor_may_stand_on_either_side():
    tensor = torch.rand(BATCH, QUERIES, KEYS) > 0.5
    causal = masks.causal()
    both = tensor & causal.tensor(QUERIES, KEYS)
    assert torch.equal((causal & tensor).tensor(QUERIES, KEYS), both)
    assert torch.equal((tensor & causal).tensor(QUERIES, KEYS), both)
    either = tensor | causal.tensor(QUERIES, KEYS)
    assert torch.equal((causal | tensor).tensor(QUERIES, KEYS), either)
    assert torch.equal((tensor | causal).tensor(QUERIES, KEYS), either)


@pytest.mark.parametrize(
    "make",
    [
        lambda: masks.from_lengths([3, 7]),
        lambda: torch.rand(BATCH, 1, KEYS) > 0.5,
        lambda: torch.rand(BATCH, QUERIES, KEYS) > 0.5,
        lambda: torch.rand(QUERIES, KEYS) > 0.5,
        lambda: torch.ones(BATCH, QUERIES, 1, dtype=torch.bool),
        lambda: masks.from_lengths([3, 7]) & (torch.rand(QUERIES, KEYS) > 0.5),
        lambda: masks.from_lengths([3, 7]) | (torch.rand(QUERIES, KEYS) > 0.5),
    ],
    ids=["lengths", "over keys", "full", "rows", "one key", "and", "or"],
)
def test_appended_keys_may_be_attended(make):
    mask = masks.as_mask(make())
    before = mask.tensor(QUERIES, KEYS).expand(BATCH, QUERIES, KEYS)
    after = mask.grow(KEYS, 3).tensor(QUERIES, KEYS + 3).expand(BATCH, QUERIES, KEYS + 3)
    assert torch.equal(after[..., :KEYS], before)
    assert after[..., KEYS:].all()


def test_a_mask_grown_twice():
    mask = masks.from_lengths([3, 7]).grow(KEYS, 2).grow(KEYS + 2, 1)
    expected = [[j < length or j >= KEYS for j in range(KEYS + 3)] for length in (3, 7)]
    assert mask.tensor(1, KEYS + 3)[:, 0].tolist() == expected


def test_inverted_mask_refuses_to_grow():
    with pytest.raises(ValueError, match="cannot grow"):
        (~masks.from_lengths([3])).grow(KEYS, 1)


def test_masks_of_one_row_serve_every_row():
    rows = torch.tensor([2, 0, 1])
    for mask in (masks.from_lengths([3]), masks.as_mask(torch.rand(1, 1, KEYS) > 0.5), masks.causal()):
        assert torch.equal(mask.index(rows, 3).tensor(QUERIES, KEYS), mask.tensor(QUERIES, KEYS))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda mask: pickle.loads(pickle.dumps(mask))])
def test_masks_copy_and_pickle(copied):
    mask = masks.from_lengths([3, 7]) & masks.causal() & ~masks.window(1) | (torch.rand(QUERIES, KEYS) > 0.5)
    assert torch.equal(copied(mask).tensor(QUERIES, KEYS), mask.tensor(QUERIES, KEYS))


@given(
    dtype=st.sampled_from([torch.float32, torch.float64, torch.bfloat16, torch.float16]),
    batch=st.sampled_from([(), (2,), (2, 3)]),
)
@settings(max_examples=20)
def test_float_masks_are_refused_with_the_fix(dtype, batch):
    attention = Attention(score=ScaledDotScore())
    x = torch.randn(*batch, KEYS, 3)
    with pytest.raises(TypeError, match=r"mask must be bool, True = may be attended, got torch\.\w+.*`mask == 0`"):
        attention(x, x, mask=torch.zeros(*batch, KEYS, KEYS, dtype=dtype))


@given(dtype=st.sampled_from([torch.int64, torch.int32, torch.uint8]))
@settings(max_examples=10)
def test_whole_number_masks_are_refused_with_the_fix(dtype):
    attention = Attention(score=ScaledDotScore())
    x = torch.randn(2, KEYS, 3)
    with pytest.raises(
        TypeError, match=r"got torch\.\w+: use `mask\.bool\(\)` if 1 means may be attended, `mask == 0`"
    ):
        attention(x, x, mask=torch.ones(2, 1, KEYS, dtype=dtype))
    with pytest.raises(TypeError, match=r"mask\.bool\(\)"):
        masks.causal() & torch.ones(KEYS, KEYS, dtype=dtype)


@pytest.mark.parametrize("mask", [[[True]], 3, "causal"])
def test_what_is_no_tensor_is_refused(mask):
    with pytest.raises(TypeError, match=f"bool tensor or one of saccade.masks, got {type(mask).__name__}"):
        masks.as_mask(mask)


@pytest.mark.parametrize(
    "shape",
    [(BATCH, KEYS), (KEYS + 2,), (3, 1, KEYS), (BATCH, QUERIES + 2, KEYS), (BATCH, QUERIES, KEYS + 2), (1, 1, 1, KEYS)],
    ids=str,
)
def test_masks_of_the_wrong_shape_are_refused(shape):
    attention = Attention(score=AdditiveScore(query_dim=3, key_dim=11, hidden_dim=13))
    query, keys = torch.randn(BATCH, QUERIES, 3), torch.randn(BATCH, KEYS, 11)
    with pytest.raises(ValueError, match="mask") as error:
        attention(query, keys, mask=torch.ones(shape, dtype=torch.bool))
    assert str(shape) in str(error.value)
    assert f"= ({BATCH}, {QUERIES}, {KEYS})" in str(error.value) or f"= (*batch, queries, {KEYS})" in str(error.value)
    assert "masks.from_lengths(lengths)" in str(error.value)


def test_masks_that_do_not_combine_are_refused():
    attention = Attention(score=ScaledDotScore())
    x = torch.randn(BATCH, KEYS, 3)
    wrong = torch.ones(3, 1, KEYS, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"masks of shapes \(2, 7\) and \(3, 7\) cannot be combined"):
        attention(x, x, mask=masks.from_lengths([1, 2]) & wrong & masks.causal())


def test_a_mask_of_one_number_serves_all():
    attention = Attention(score=ScaledDotScore())
    x = torch.randn(BATCH, KEYS, 3)
    assert (attention(x, x, mask=torch.tensor(False)).weights == 0).all()
    assert (attention(x, x, mask=torch.tensor(True)).weights > 0).all()


def test_lengths_for_another_batch_are_refused():
    attention = Attention(score=ScaledDotScore())
    x = torch.randn(BATCH, KEYS, 3)
    with pytest.raises(ValueError, match=r"mask of shape \(3, 1, 7\) does not broadcast"):
        attention(x, x, mask=masks.from_lengths([1, 2, 3]))


@pytest.mark.parametrize(
    ("lengths", "error", "match"),
    [
        ([1.5, 2.0], TypeError, "whole numbers, got torch.float32; use lengths.long()"),
        ([True, False], TypeError, "whole numbers, got torch.bool"),
        ([3, -1], ValueError, "0 or more, got -1"),
    ],
)
def test_wrong_lengths_are_refused(lengths, error, match):
    with pytest.raises(error, match=match):
        masks.from_lengths(lengths)


def test_wrong_windows_are_refused():
    with pytest.raises(ValueError, match="left=-1, right=2"):
        masks.window(-1, 2)
