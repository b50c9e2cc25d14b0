"""What holds for members that need as many queries as keys, all of them at once."""

import pytest
import torch

from saccade import Attention, MultiHead
from saccade.aggregations import SoftChildren
from saccade.scores import AdditiveScore, ScaledDotScore
from saccade.selections import Softmax

from .members import SELECTIONS, build, randomise
from .test_compile import Outputs

NAMES = [name for name, member in SELECTIONS.items() if member.self_attention]
DTYPES = [torch.float32, torch.float64, torch.bfloat16]
BATCH, WORDS = 3, 7
LENGTHS = torch.tensor([7, 4, 0])
MASK = torch.arange(WORDS) < LENGTHS[:, None, None]

every_selection = pytest.mark.parametrize("name", NAMES)
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: str(dtype).removeprefix("torch."))


def random(*shape, dtype=torch.float64, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def attention(name, aggregation=None):
    score = AdditiveScore(query_dim=5, key_dim=5, hidden_dim=11)
    module = Attention(score=score, selection=SELECTIONS[name].build(None), aggregation=aggregation)
    return randomise(module).double().eval()


@every_selection
@every_dtype
def test_rows_have_one_head_and_missing_words_none(name, dtype):
    scores = random(BATCH, WORDS, WORDS, dtype=dtype).requires_grad_()
    distribution = build(SELECTIONS[name])(scores, MASK)
    present = MASK.squeeze(-2)
    assert distribution.marginals.dtype == dtype
    expected = present.to(torch.float64)
    tolerance = {"rtol": 0, "atol": 8 * torch.finfo(dtype).eps}
    torch.testing.assert_close(distribution.marginals.double().sum(-1), expected, **tolerance)
    assert (distribution.marginals[~(present.unsqueeze(-1) & present.unsqueeze(-2))] == 0).all()
    assert (distribution.mode.sum(-1) == expected).all()
    assert (distribution.sample(3).sum(-1) == expected).all()
    assert distribution.log_prob(distribution.mode).shape == distribution.entropy().shape == (BATCH,)
    total = (distribution.marginals * random(WORDS, dtype=dtype)).sum() + distribution.entropy().sum()
    (gradient,) = torch.autograd.grad(total, scores)
    assert gradient.isfinite().all()
    assert (gradient[~(present.unsqueeze(-1) & present.unsqueeze(-2))] == 0).all()


@every_selection
def test_masked_is_removed_wherever_it_stands(name):
    selection, scores = build(SELECTIONS[name]), random(2, WORDS, WORDS)
    kept = torch.tensor([True, False, True, True, False, True, True])
    masked = selection(scores, kept.expand(2, 1, WORDS))
    removed = selection(scores[:, kept][..., kept])
    torch.testing.assert_close(masked.marginals[:, kept][..., kept], removed.marginals)
    torch.testing.assert_close(masked.mode[:, kept][..., kept], removed.mode)
    torch.testing.assert_close(masked.entropy(), removed.entropy())
    garbage = torch.where(kept & kept.unsqueeze(-1), scores, torch.nan)
    torch.testing.assert_close(
        selection(garbage, (kept & kept.unsqueeze(-1)).expand(2, -1, -1)).marginals, masked.marginals
    )


@every_selection
@every_dtype
def test_extreme_scores_are_finite(name, dtype):
    signs = torch.randint(-1, 2, (5, WORDS, WORDS), generator=torch.Generator().manual_seed(3))
    signs[0], signs[1] = 1, -1
    scores = (1e4 * signs).to(dtype).requires_grad_()
    distribution = build(SELECTIONS[name])(scores)
    tolerance = {"rtol": 0, "atol": max(1e-9, 8 * torch.finfo(dtype).eps)}  # weights of 1e6 in float64
    torch.testing.assert_close(distribution.marginals.double().sum(-1), torch.ones(5, WORDS).double(), **tolerance)
    (gradient,) = torch.autograd.grad((distribution.marginals * random(WORDS, dtype=dtype)).sum(), scores)
    assert gradient.isfinite().all()
    assert (distribution.entropy() >= 0).all()


@every_selection
@pytest.mark.parametrize("words", [0, 1])
def test_sentences_of_no_word_and_of_one(name, words):
    distribution = build(SELECTIONS[name])(random(2, words, words))
    assert torch.equal(distribution.marginals, torch.ones(2, words, words, dtype=torch.float64))
    assert torch.equal(distribution.mode, distribution.marginals)
    assert torch.equal(distribution.sample(), distribution.marginals)
    assert (distribution.entropy() == 0).all()


@every_selection
def test_inside_attention_and_heads(name):
    words = random(2, WORDS, 5)
    module = attention(name)
    reading = module(words, words, mask=MASK[:2])
    torch.testing.assert_close(reading.context, reading.weights @ words)
    heads = MultiHead(
        attention=Attention(score=ScaledDotScore(), selection=SELECTIONS[name].build(None)), num_heads=5, query_dim=10
    )
    read = heads.double()(random(2, WORDS, 10), random(2, WORDS, 10), mask=MASK[:2])
    assert read.context.shape == (2, WORDS, 10)
    assert read.weights.shape == (2, 5, WORDS, WORDS)
    torch.testing.assert_close(read.weights[0].sum(-1), torch.ones(5, WORDS, dtype=torch.float64))


@every_selection
def test_train_is_eval_is_no_grad(name):
    module, words = attention(name), random(2, WORDS, 5)
    evaluated = module(words, words, mask=MASK[:2]).context
    torch.testing.assert_close(module.train()(words, words, mask=MASK[:2]).context, evaluated)
    with torch.no_grad():
        torch.testing.assert_close(module(words, words, mask=MASK[:2]).context, evaluated)
    with torch.inference_mode():
        torch.testing.assert_close(module(words, words, mask=MASK[:2]).context, evaluated)


@every_selection
def test_compiled_is_eager(name):
    module, words = Outputs(attention(name)), random(2, WORDS, 5).requires_grad_()
    torch.compiler.reset()
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    ours, theirs = compiled(words, words, words, MASK[:2]), module(words, words, words, MASK[:2])
    torch.testing.assert_close(ours, theirs)
    one = torch.autograd.grad(ours[0].square().sum() + ours[1].square().sum(), words)
    two = torch.autograd.grad(theirs[0].square().sum() + theirs[1].square().sum(), words)
    torch.testing.assert_close(one, two)


@every_selection
def test_exported_is_eager(name, tmp_path):
    """For any number of words; the program calls an operator of Saccade's, which must be imported where it runs."""
    module, words = Outputs(attention(name)), random(2, WORDS, 5)
    size = torch.export.Dim("size", min=2, max=100)
    shapes = ({1: size}, {1: size}, {1: size}, {2: size})
    with torch.no_grad():
        program = torch.export.export(module, (words, words, words, MASK[:2]), dynamic_shapes=shapes)
        torch.export.save(program, tmp_path / "tree.pt2")
        loaded = torch.export.load(tmp_path / "tree.pt2").module()
        for length in (WORDS, 11):
            other, mask = random(2, length, 5, seed=1), torch.arange(length) < torch.tensor([[[length]], [[3]]])
            torch.testing.assert_close(loaded(other, other, other, mask), module(other, other, other, mask))


@every_selection
def test_as_many_queries_as_keys(name):
    with pytest.raises(ValueError, match="as many queries as keys"):
        build(SELECTIONS[name])(random(2, 3, 5))


def test_soft_children_are_the_sum_over_those_who_attend():
    words, mask = random(2, WORDS, 5), MASK[:2]
    module = Attention(score=AdditiveScore(query_dim=5, key_dim=5, hidden_dim=11), aggregation=SoftChildren()).double()
    reading = module(words, words, mask=mask)
    for b in range(2):
        for h in range(WORDS):
            children = [reading.weights[b, d, h] * words[b, d] for d in range(LENGTHS[b]) if d != h]
            torch.testing.assert_close(reading.context[b, h], torch.stack(children).sum(0))
    with pytest.raises(ValueError, match="as many queries as keys"):
        module(words[:, :3], words)
    assert isinstance(module.selection, Softmax)
