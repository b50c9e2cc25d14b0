"""Models that read feature vectors instead of tokens, with every encoder."""

import pytest
import torch

from saccade.models import RNNSearch, Transformer
from saccade.search import beam

DIM, VOCAB = 3, 11
RNN = {"source_dim": DIM, "target_vocab": VOCAB, "embedding_dim": 5, "hidden_dim": 8}
HEADS = {"source_dim": DIM, "target_vocab": VOCAB, "dim": 12, "num_heads": 2, "encoder_layers": 1, "dropout": 0.0}
MODELS = {
    **{
        f"rnnsearch_{encoder}": lambda encoder=encoder, **options: RNNSearch(**RNN, encoder=encoder, **options)
        for encoder in ("birnn", "rnn", "convolutional", "embedding")
    },
    "rnnsearch_location_aware": lambda **options: RNNSearch(**RNN, score="location_aware", **options),
    **{
        f"transformer_{positions}": lambda positions=positions, **options: Transformer(
            **HEADS, positions=positions, **options
        )
        for positions in ("sinusoidal", "learned", "rotary")
    },
}
LENGTHS = torch.tensor([8, 5, 1, 0])
MASK = torch.arange(8) < LENGTHS[:, None]


def build(name, stride):
    torch.manual_seed(0)
    return MODELS[name](source_stride=stride).double().eval()


def batch():
    torch.manual_seed(1)
    return torch.randn(4, 8, DIM, dtype=torch.float64), torch.randint(1, VOCAB, (4, 5))


@pytest.mark.parametrize("stride", [1, 3])
@pytest.mark.parametrize("name", MODELS)
def test_shapes_masks_and_gradients(name, stride):
    model = build(name, stride)
    source, target = batch()
    source.requires_grad_()
    positions = -(-8 // stride)
    encoded = model.encode(source, MASK)
    assert encoded.states.shape[:2] == encoded.mask.shape == (4, positions)
    assert encoded.mask.sum(1).tolist() == [-(-length // stride) for length in LENGTHS.tolist()]
    decoded = model(source, MASK, target)
    assert decoded.weights.shape == (4, 5, positions)
    torch.testing.assert_close(decoded.weights[:3].sum(-1), torch.ones(3, 5, dtype=torch.float64))
    assert not decoded.weights.masked_select(~encoded.mask.unsqueeze(1)).any()
    model.head.logits(decoded.features).log_softmax(-1)[..., 3].sum().backward()
    assert (source.grad.abs().sum(-1) > 0).equal(MASK)
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize("stride", [1, 3])
@pytest.mark.parametrize("name", MODELS)
def test_padding_changes_nothing_whatever_it_contains(name, stride):
    model = build(name, stride)
    source, target = batch()
    dirty = source.masked_fill(~MASK.unsqueeze(-1), torch.nan)
    decoded = model(dirty, MASK, target)
    for row, length in enumerate(LENGTHS.tolist()):
        alone = model(source[row : row + 1, :length], MASK[row : row + 1, :length], target[row : row + 1])
        torch.testing.assert_close(alone.features[0], decoded.features[row], atol=1e-10, rtol=0)
        width = alone.weights.shape[-1]
        torch.testing.assert_close(alone.weights[0], decoded.weights[row, :, :width], atol=1e-10, rtol=0)


@pytest.mark.parametrize("stride", [1, 3])
@pytest.mark.parametrize("name", MODELS)
def test_decoding(name, stride):
    model = build(name, stride)
    source, target = batch()
    with torch.no_grad():
        logits = model.head.logits(model(source, MASK, target).features)
        state = model.begin(model.encode(source, MASK))
        for t in range(5):
            step = model.step(target[:, t], state)
            state = step.state
            torch.testing.assert_close(step.logits, logits[:, t], atol=1e-10, rtol=0)
    found = beam(model, model.encode(source, MASK), size=3, max_length=6, weights=True)
    for row, (best,) in enumerate(found):
        assert 0 < best.weights.shape[0] <= 7
        assert not best.weights[:, -(-int(LENGTHS[row]) // stride) :].any()


@pytest.mark.parametrize(
    "model",
    [
        lambda: RNNSearch(**{**RNN, "embedding_dim": 16, "hidden_dim": 32}, cell="fast", source_stride=2),
        lambda: Transformer(**{**HEADS, "dim": 32}, source_stride=2),
    ],
    ids=["rnnsearch", "transformer"],
)
def test_learns_to_spell_noisy_signals(model):
    """Each symbol is a direction, held for two frames; a model that ignored its source would stay at log 4."""
    torch.manual_seed(0)
    model, symbols = model(), torch.nn.functional.normalize(torch.randn(4, DIM), dim=-1) * 2
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(150):
        content = torch.randint(4, (32, 4))
        source = symbols[content].repeat_interleave(2, dim=1) + 0.1 * torch.randn(32, 8, DIM)
        target = torch.cat([torch.ones(32, 1, dtype=torch.long), content + 4], dim=1)
        decoded = model(source, torch.ones(32, 8, dtype=torch.bool), target[:, :-1])
        total, right, _ = model.head.loss(decoded.features.flatten(0, 1), target[:, 1:].flatten())
        optimiser.zero_grad()
        (total / 128).backward()
        optimiser.step()
    assert right / 128 > 0.9


def test_refusals():
    for made, options, message in (
        (RNNSearch, {"source_vocab": 7}, "Pass either source_vocab.*got source_vocab=7 and source_dim=3"),
        (RNNSearch, {"source_dim": None}, "got source_vocab=None and source_dim=None"),
        (RNNSearch, {"source_dim": None, "source_vocab": 7, "source_stride": 2}, "needs source_dim"),
        (RNNSearch, {"source_stride": 0}, "stride must be"),
    ):
        with pytest.raises(ValueError, match=message):
            made(**{**RNN, **options})
    with pytest.raises(ValueError, match="tied='all' shares token embeddings"):
        Transformer(**HEADS, tied="all")
    model = RNNSearch(**RNN)
    for source in (torch.zeros(2, 5, 4), torch.zeros(2, 5), torch.zeros(2, 5, 3, dtype=torch.long)):
        with pytest.raises(ValueError, match=r"source must be floating point, \(batch, length, 3\)"):
            model.encode(source, torch.ones(2, 5, dtype=torch.bool))
