"""Listen, attend and spell, written out step by step."""

import pytest
import torch
from torch.nn import functional as F

from saccade.models import ListenAttendSpell, RNNSearch

SIZES = {"source_dim": 3, "target_vocab": 11, "embedding_dim": 5, "listener_dim": 4, "hidden_dim": 7}
TARGET = torch.tensor([[1, 4, 9, 5], [1, 7, 2, 0]])


def source(length: int = 13):
    torch.manual_seed(1)
    return torch.randn(2, length, 3), torch.arange(length) < torch.tensor([[length], [length // 2]])


def build(**options):
    torch.manual_seed(0)
    model = ListenAttendSpell(**{**SIZES, **options})
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    return model


def test_the_speller_is_the_papers() -> None:
    model = build(pyramid=(2, 2)).double().eval()
    frames, mask = source()
    frames = frames.double()
    encoded, decoder = model.encode(frames, mask), model.decoder
    assert encoded.states.shape == (2, 4, 8)
    features, weights = model(frames, mask, TARGET)
    for row in range(2):
        heard = encoded.states[row][encoded.mask[row]]
        keys = decoder.attention.score.key_net(heard)
        state = [tuple(part.clone() for part in layer) for layer in decoder.bridge.states.unbind(0)]
        context = torch.zeros(8).double()
        for step, token in enumerate(TARGET[row]):
            first, second = decoder.stack.layers
            given = torch.cat([first.input_proj.weight, decoder.feed_proj.weight], dim=1)
            inputs = given @ torch.cat([decoder.embedding.weight[token], context]) + first.input_proj.bias
            state[0] = tuple(each[0] for each in first.cell.step(inputs[None], tuple(s[None] for s in state[0])))
            state[1] = tuple(each[0] for each in second.step(state[0][0][None], tuple(s[None] for s in state[1])))
            spelled = state[1][0]
            alpha = F.softmax(keys @ decoder.attention.score.query_net(spelled), dim=0)
            context = alpha @ heard
            torch.testing.assert_close(weights[row, step, : len(heard)], alpha)
            wanted = torch.tanh(decoder.combine_proj.weight @ torch.cat([context, spelled]))
            torch.testing.assert_close(features[row, step], wanted)


def test_sampling_feeds_what_the_model_would_write() -> None:
    model = build(sampling=0.9, pyramid=[2])
    frames, mask = source()
    plain = model.eval()(frames, mask, TARGET).features
    torch.testing.assert_close(model(frames, mask, TARGET).features, plain)
    model.train()
    torch.manual_seed(3)
    drawn = model(frames, mask, TARGET).features
    torch.testing.assert_close(drawn[:, 0], plain[:, 0])  # before the first token there is nothing to draw
    assert not torch.allclose(drawn[:, 1:], plain[:, 1:])
    # A model that is certain of a token feeds it, whatever the target says.
    model.head.proj.weight.data.zero_()
    model.head.proj.bias.data.zero_()
    model.head.proj.bias.data[6] = 1e4
    model.decoder.sampling = 1 - 1e-9
    always = torch.tensor([[1, 6, 6, 6]] * 2)
    torch.testing.assert_close(model(frames, mask, TARGET).features, model.eval()(frames, mask, always).features)
    model.head.proj.bias.data[:3] = 1e9  # never padding, start or end
    model.train()
    torch.testing.assert_close(model(frames, mask, TARGET).features, model.eval()(frames, mask, always).features)


def test_every_parameter_learns_from_sampled_steps_and_ctc() -> None:
    model = build(sampling=0.5, ctc_weight=0.3, source_stride=2, pyramid=[2], start="summary").train()
    frames, mask = source(30)
    target = torch.tensor([[4, 9, 5, 2], [7, 2, 0, 0]])
    real = target != 0
    decoded = model(frames, mask, TARGET)
    found = model.head.loss(decoded.features[real], target[real], first=2)
    added = model.penalty(decoded, target, real, lambda: torch.zeros(2))
    assert float(added.detach()) > 0
    (found.total + added).backward()
    assert [name for name, p in model.named_parameters() if p.grad is None or not torch.isfinite(p.grad).all()] == []
    assert model.encoder.stride == 4
    assert build().penalty(build()(frames, mask, TARGET), target, real, lambda: torch.zeros(2)) is None


def test_convolutions_before_the_listener() -> None:
    model = build(source_filters=5, pyramid=[2], ctc_weight=0.3).train()
    frames, mask = source(30)
    decoded = model(frames, mask, TARGET)
    assert decoded.weights.shape == (2, 4, 4)
    assert model.encoder.stride == 8
    assert model.positions(mask).tolist() == [4, 2]
    (decoded.features.square().sum() + model.encode(frames, mask).states.sum()).backward()
    learning = [p.grad is not None and bool(p.grad.any()) for p in model.encoder.embedding.parameters()]
    assert learning == [True] * 6


def test_the_listener_works_with_other_decoders() -> None:
    model = RNNSearch(source_dim=3, target_vocab=11, embedding_dim=5, hidden_dim=4, encoder="pyramidal", ctc_weight=0.2)
    frames, mask = source()
    assert model(frames, mask, TARGET).weights.shape == (2, 4, 4)
    assert model.ctc.proj.in_features == 8
    assert model.positions(mask).tolist() == [4, 2]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"source_vocab": 5}, "either source_vocab"),
        ({"sampling": 1.0}, "sampling"),
        ({"start": "end"}, "'learned' or 'summary'"),
        ({"source_filters": 5, "source_stride": 2}, "instead of source_stride"),
        ({"source_filters": 5, "source_dim": None, "source_vocab": 7}, "is for frames"),
        ({"ctc_weight": 1.5}, "ctc_weight"),
        ({"score": "mpl_dot"}, "mlp_dot"),
    ],
)
def test_arguments_that_make_no_sense(options, problem) -> None:
    with pytest.raises(ValueError, match=problem):
        build(**options)
