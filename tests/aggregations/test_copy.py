import pytest
import torch

from saccade import Attention, MultiHead
from saccade.aggregations import Copy, copy_distribution, create
from saccade.scores import DotScore
from saccade.selections import Softmax

from .examples import BATCH, DTYPES, KEYS, QUERIES, example

VOCAB, EXTRA = 13, 2


def ids():
    """Every example has duplicates, and words outside the vocabulary."""
    return torch.tensor([[4, 4, 0, 13, 12, 4, 13], [14, 1, 1, 2, 14, 13, 0], [3, 3, 3, 3, 3, 3, 3]])


def test_duplicates_add_up_and_extra_ids_have_their_place():
    _, weights, _, mask = example()
    context = create("copy", vocab_size=VOCAB, extra_ids=EXTRA)(weights, ids().unsqueeze(-1), mask=mask)
    expected = torch.zeros(BATCH, QUERIES, VOCAB + EXTRA, dtype=torch.float64)
    for b in range(BATCH):
        for i in range(QUERIES):
            for j in range(KEYS):
                expected[b, i, ids()[b, j]] += weights[b, i, j]
    torch.testing.assert_close(context, expected)
    torch.testing.assert_close(context.sum(-1), mask.any(-1).double())


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8])
def test_takes_whole_numbers_of_any_kind(dtype):
    _, weights, _, _ = example()
    torch.testing.assert_close(
        copy_distribution(weights, ids().to(dtype), size=15), copy_distribution(weights, ids(), size=15)
    )


def test_half_precision_keeps_the_mass_of_many_duplicates():
    weights = torch.full((1, 1009), 1 / 1009, dtype=torch.bfloat16)
    mass = copy_distribution(weights, torch.zeros(1009, dtype=torch.long), size=2)
    assert mass.dtype == torch.bfloat16
    torch.testing.assert_close(mass.float(), torch.tensor([[1.0, 0.0]]), atol=0.01, rtol=0)


def test_gradient_goes_back_to_the_positions():
    _, weights, _, mask = example()
    weights = weights[:2].clone().requires_grad_()
    copy = Copy(vocab_size=VOCAB, extra_ids=EXTRA)
    assert torch.autograd.gradcheck(lambda w: copy(w, ids()[:2].unsqueeze(-1), mask=mask[:2]), [weights])


def test_in_attention_with_padding_empty_rows_and_every_dtype():
    for dtype in DTYPES:
        attention = Attention(score=DotScore(), selection=Softmax(), aggregation=Copy(vocab_size=5, extra_ids=2))
        query = (100 * torch.randn(3, 2, 11)).to(dtype).requires_grad_()
        keys = torch.randn(3, 7, 11).to(dtype)
        padded = torch.full((3, 7), -100)
        padded[0], padded[1, :3] = torch.tensor([0, 1, 1, 6, 5, 4, 6]), torch.tensor([2, 2, 3])
        mask = torch.arange(7) < torch.tensor([7, 3, 0])[:, None, None]
        context = attention(query, keys, padded.unsqueeze(-1), mask=mask).context
        assert context.dtype == dtype
        assert context.shape == (3, 2, 7)
        assert (context[2] == 0).all()
        torch.testing.assert_close(context[:2].float().sum(-1), torch.ones(2, 2), atol=0.02, rtol=0)
        without = attention(query[1:2], keys[1:2, :3], padded[1:2, :3].unsqueeze(-1)).context
        torch.testing.assert_close(context[1:2], without)
        context.float().square().sum().backward()
        assert query.grad.isfinite().all()
        assert (query.grad[2] == 0).all()


def test_a_memory_of_ids_grows():
    attention = Attention(score=DotScore(), aggregation=Copy(vocab_size=5))
    query, keys, tokens = torch.randn(2, 3, 11), torch.randn(2, 7, 11), torch.randint(5, (2, 7, 1))
    memory = attention.prepare(keys[:, :4], tokens[:, :4]).append(keys[:, 4:], tokens[:, 4:])
    torch.testing.assert_close(attention.read(query, memory).context, attention(query, keys, tokens).context)


def test_no_keys():
    attention = Attention(score=DotScore(), aggregation=Copy(vocab_size=5))
    context = attention(torch.randn(2, 3, 11), torch.randn(2, 0, 11), torch.zeros(2, 0, 1, dtype=torch.long)).context
    assert context.tolist() == torch.zeros(2, 3, 5).tolist()


@pytest.mark.parametrize("wrong", [-1, 15])
def test_ids_out_of_range_are_named(wrong):
    _, weights, _, _ = example()
    bad = ids()
    bad[1, 2] = wrong
    with pytest.raises(ValueError, match=rf"from 0 to 14 .* got {wrong}"):
        Copy(vocab_size=VOCAB, extra_ids=EXTRA)(weights, bad.unsqueeze(-1))


def test_refuses_what_are_no_ids():
    _, weights, values, _ = example()
    with pytest.raises(TypeError, match=r"ids\.unsqueeze"):
        Copy(vocab_size=VOCAB)(weights, values)
    with pytest.raises(TypeError, match="float64"):
        Copy(vocab_size=VOCAB)(weights, values[..., :1])
    with pytest.raises(TypeError, match=r"torch\.bool"):
        copy_distribution(weights, ids() > 3, size=15)
    with pytest.raises(ValueError, match="vocab_size=0"):
        Copy(vocab_size=0)


def test_heads_are_refused_with_the_fix():
    attention = Attention(score=DotScore(), aggregation=Copy(vocab_size=VOCAB))
    with pytest.raises(ValueError, match=r"MultiHead projects .* copy_distribution"):
        MultiHead(attention=attention, num_heads=2, query_dim=10)
    narrow = MultiHead(attention=attention, num_heads=2, query_dim=10, value_head_dim=1)
    with pytest.raises(TypeError, match="outside MultiHead"):
        narrow(torch.randn(3, 5, 10))
