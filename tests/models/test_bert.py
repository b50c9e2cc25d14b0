"""BERT: shapes, padding, heads, and gradients."""

import pytest
import torch

import saccade
from saccade.models import Bert

VOCAB, CLASSES = 31, 3


def build(**arguments):
    torch.manual_seed(5)
    usual = {"vocab": VOCAB, "dim": 22, "num_heads": 2, "num_layers": 2, "feed_forward_dim": 29, "max_length": 17}
    if arguments.get("head", "label") in ("label", "tokens"):
        usual["classes"] = CLASSES
    return Bert(**{**usual, **arguments}).eval()


def batch():
    """Three texts of 13, 7 and 2 tokens; the first two are pairs."""
    generator = torch.Generator().manual_seed(3)
    lengths = torch.tensor([13, 7, 2])
    tokens = torch.randint(0, VOCAB, (3, 13), generator=generator)
    mask = torch.arange(13) < lengths[:, None]
    segments = (mask & (torch.arange(13) >= torch.tensor([5, 3, 2])[:, None])).long()
    return tokens, mask, segments


@pytest.mark.parametrize(
    ("head", "shape"), [("label", (3, CLASSES)), ("tokens", (3, 13, CLASSES)), ("span", (3, 13, 2))]
)
def test_each_head_has_its_shape(head, shape):
    assert build(head=head)(*batch()).shape == shape


def test_pretraining_has_two_heads():
    model = build(head="pretraining")
    states, pooled = model.read(*batch())
    assert torch.equal(model(*batch()), model.masked(states))
    assert model.masked(states).shape == (3, 13, VOCAB)
    assert model.next_sentence(pooled).shape == (3, 2)
    assert model.masked.weight is model.embedding.weight


@pytest.mark.parametrize("pooling", ["cls", "mean", "attention"])
@pytest.mark.parametrize("selection", ["softmax", "sparsemax"])
def test_a_padded_batch_equals_one_by_one(pooling, selection):
    model = build(pooling=pooling, selection=selection, head="none")
    tokens, mask, segments = batch()
    together = model.read(tokens, mask, segments)
    for row in range(3):
        length = int(mask[row].sum())
        part = [each[row : row + 1, :length] for each in (tokens, mask, segments)]
        alone = model.read(*part)
        torch.testing.assert_close(alone.states[0], together.states[row, :length], rtol=0, atol=1e-5)
        torch.testing.assert_close(alone.pooled[0], together.pooled[row], rtol=0, atol=1e-5)


def test_pooling_is_what_it_says():
    tokens, mask, segments = batch()
    model = build(head="none", pooling="mean")
    states, pooled = model.read(tokens, mask, segments)
    torch.testing.assert_close(pooled[1], states[1, :7].mean(0))
    model = build(head="none")
    states, pooled = model.read(tokens, mask, segments)
    torch.testing.assert_close(pooled, torch.tanh(states[:, 0] @ model.pooler.weight.T + model.pooler.bias))
    model = build(head="none", pooling="attention")
    with saccade.record(model) as trace:
        states, pooled = model.read(tokens, mask, segments)
    weights = trace["reader"].weights[:, 0]
    assert weights.shape == (3, 1, 13)
    assert not weights[1, 0, 7:].any()
    torch.testing.assert_close(pooled, (weights @ states).squeeze(1))


def test_without_a_head_there_are_states_but_no_logits():
    model = build(head="none")
    assert model.read(*batch()).pooled.shape == (3, 22)
    with pytest.raises(ValueError, match="has no head and gives no logits: call `read`"):
        model(*batch())


def test_segments_are_told_apart_and_default_to_the_first():
    model = build()
    tokens, mask, segments = batch()
    assert torch.equal(model(tokens, mask), model(tokens, mask, torch.zeros_like(segments)))
    assert not torch.equal(model(tokens, mask), model(tokens, mask, segments))
    with pytest.raises(ValueError, match=r"segments must be from 0 to 1, got 0 to 2"):
        model(tokens, mask, 2 * segments)
    with pytest.raises(ValueError, match="max_length=17"):
        model(tokens.repeat(1, 2), mask.repeat(1, 2))


def test_gradients_reach_every_weight():
    for head, pooling in (("label", "cls"), ("label", "attention"), ("tokens", "attention"), ("span", "cls")):
        model = build(head=head, pooling=pooling).train()
        model(*batch()).square().sum().backward()
        assert all(parameter.grad is not None for parameter in model.parameters())
    model = build(head="pretraining").train()
    states, pooled = model.read(*batch())
    (model.masked(states).square().sum() + model.next_sentence(pooled).sum()).backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_all_attention_is_recorded():
    model = build(score="additive")
    with saccade.record(model) as trace:
        model(*batch())
    assert [call.shape for call in trace.calls] == [(3, 2, 13, 13)] * 2


def test_the_initial_weights_are_those_of_the_paper():
    model = build(dim=122, vocab=211)
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            assert parameter.abs().max() <= (0.1 if "positions" in name else 0.04)
            assert float(parameter.detach().std()) == pytest.approx(0.02, rel=0.2), name
        elif name.endswith("bias"):
            assert not parameter.any()


def test_mistakes_are_named():
    for arguments, message in (
        ({"head": "labels"}, "Did you mean 'label'"),
        ({"pooling": "max"}, "pooling must be"),
        ({"classes": None}, "do not go together"),
        ({"head": "span", "classes": 3}, "do not go together"),
        ({"num_heads": 3}, "not a multiple"),
        ({"num_layers": 0}, "num_layers"),
    ):
        with pytest.raises(ValueError, match=message):
            build(**arguments)


def windowed(**arguments):
    return build(window=6, **{"pooling": "mean", "head": "none", **arguments})


def test_windows_are_texts_of_their_own():
    model, whole = windowed(), build(pooling="mean", head="none")
    tokens, mask, segments = batch()
    states, pooled = model.read(tokens, mask, segments)
    assert states.shape == (3, 13, 22)
    # 13 tokens: the first with the next five, then the first again with five more, and with the last two.
    parts = [[0, 1, 2, 3, 4, 5], [0, 6, 7, 8, 9, 10], [0, 11, 12]]
    alone = [whole.read(tokens[:1, part], mask[:1, part], segments[:1, part]).states[0] for part in parts]
    expected = torch.cat([alone[0], alone[1][1:], alone[2][1:]])
    torch.testing.assert_close(states[0], expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(pooled[0], expected.mean(0), rtol=0, atol=1e-5)


@pytest.mark.parametrize("pooling", ["mean", "attention"])
def test_windows_padded_one_by_one_and_without_padding(pooling):
    model = windowed(pooling=pooling)
    tokens, mask, segments = batch()
    together = model.read(tokens, mask, segments)
    lengths = mask.sum(1).tolist()
    for row, length in enumerate(lengths):
        alone = model.read(*(each[row : row + 1, :length] for each in (tokens, mask, segments)))
        torch.testing.assert_close(alone.states[0], together.states[row, :length], rtol=0, atol=1e-5)
        torch.testing.assert_close(alone.pooled[0], together.pooled[row], rtol=0, atol=1e-5)
    texts = [row[:length] for row, length in zip(tokens.tolist(), lengths, strict=True)]
    torch.testing.assert_close(model.vectors(texts, [5, 3, 2]), together.pooled, rtol=0, atol=1e-5)


def test_windows_read_more_tokens_than_there_are_positions():
    model = windowed(max_length=7, head="label", pooling="attention").train()
    tokens = torch.randint(0, VOCAB, (2, 101), generator=torch.Generator().manual_seed(3))
    logits = model(tokens, torch.ones(2, 101, dtype=torch.bool))
    logits.sum().backward()
    assert logits.shape == (2, CLASSES)
    used = model.embedding.weight.grad.abs().sum(1) > 0
    assert set(tokens.flatten().tolist()) == set(used.nonzero().flatten().tolist())


def test_windows_that_cannot_be():
    with pytest.raises(ValueError, match="window must be from 2 to the 17 positions of max_length, got 18"):
        build(window=18, pooling="mean")
    with pytest.raises(ValueError, match="pooling='cls' sees only the first window of a text: set pooling to 'mean'"):
        build(window=6)


def test_frozen_layers_get_no_gradient():
    model = build(frozen_layers=1).train()
    model(*batch()).sum().backward()
    given = [name for name, parameter in model.named_parameters() if parameter.grad is not None]
    trained = {".".join(name.split(".")[:2]) for name in given}
    assert trained == {"layers.1", "pooler.weight", "pooler.bias", "classifier.weight", "classifier.bias"}
    with pytest.raises(ValueError, match="frozen_layers must be from 0 to num_layers=2, got 3"):
        build(frozen_layers=3)
