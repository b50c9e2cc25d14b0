"""What holds for every model: one protocol, whether all steps at once or one by one, alone or in a batch."""

import pytest
import torch

from saccade.models import EncoderDecoder, models
from tests.models.family import ANY_MASS, FAMILY

LENGTHS = torch.tensor([6, 3, 1, 0])
MASK = torch.arange(6) < LENGTHS[:, None]
STEPS = 5


def build(name, dtype=torch.float64):
    torch.manual_seed(0)
    model = FAMILY[name]().to(dtype).eval()
    for parameter in model.parameters():  # so that nothing hides behind a zero
        parameter.data += 0.1 * torch.randn_like(parameter)
    return model


def batch():
    torch.manual_seed(1)
    return torch.randint(4, 13, (4, 6)), torch.randint(1, 11, (4, STEPS))


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@pytest.mark.parametrize("name", FAMILY)
def test_step_by_step_equals_teacher_forcing(name, dtype, tolerance):
    model = build(name, dtype)
    source, target = batch()
    with torch.no_grad():
        decoded = model(source, MASK, target)
        logits = model.head.logits(decoded.features)
        state = model.begin(model.encode(source, MASK))
        for t in range(STEPS):
            step = model.step(target[:, t], state)
            state = step.state
            torch.testing.assert_close(step.logits, logits[:, t], atol=tolerance, rtol=0)
            if decoded.weights is not None:
                torch.testing.assert_close(step.weights, decoded.weights[:, t], atol=tolerance, rtol=0)
    assert logits.shape == (4, STEPS, 11)


@pytest.mark.parametrize("name", FAMILY)
def test_a_row_alone_is_as_in_the_batch(name):
    model = build(name)
    source, target = batch()
    decoded = model(source, MASK, target)
    for row, length in enumerate(LENGTHS.tolist()):
        alone = model(source[row : row + 1, :length], MASK[row : row + 1, :length], target[row : row + 1])
        ours, theirs = model.head.logits(alone.features)[0], model.head.logits(decoded.features)[row]
        torch.testing.assert_close(ours, theirs, atol=1e-10, rtol=0)
        if decoded.weights is not None:
            torch.testing.assert_close(alone.weights[0], decoded.weights[row, :, :length], atol=1e-10, rtol=0)


@pytest.mark.parametrize("name", FAMILY)
def test_weights_are_on_real_source_tokens_alone(name):
    model = build(name)
    decoded = model(*batch()[:1], MASK, batch()[1])
    if decoded.weights is None:
        assert name.startswith(("cho", "sutskever", "multi_source_none"))
        return
    assert decoded.weights.shape == (4, STEPS, 6)
    assert not decoded.weights.masked_select(~MASK.unsqueeze(1)).any()
    total = decoded.weights.sum(-1)
    assert not total[3].any()
    if any(selection in name for selection in ANY_MASS):
        assert (decoded.weights <= 1 + 1e-10).all()
        assert (total[:3] > 0).any()
    else:
        torch.testing.assert_close(total[:3], torch.ones_like(total[:3]))


@pytest.mark.parametrize("name", FAMILY)
def test_a_target_token_changes_nothing_before_it(name):
    model = build(name)
    source, target = batch()
    other = target.clone()
    other[:, 3:] = 0
    before, after = model(source, MASK, target).features, model(source, MASK, other).features
    torch.testing.assert_close(before[:, :3], after[:, :3], atol=1e-12, rtol=0)
    assert not torch.allclose(before[:, 3:], after[:, 3:])


@pytest.mark.parametrize("name", FAMILY)
def test_select_and_reorder(name):
    model = build(name)
    source, target = batch()
    rows = torch.tensor([2, 0, 0, 1])
    with torch.no_grad():
        state = model.begin(model.encode(source, MASK))
        for t in range(2):
            state = model.step(target[:, t], state).state
        chosen = model.step(target[rows, 2], model.select(state, rows))
        full = model.head.logits(model(source[rows], MASK[rows], target[rows]).features)
        torch.testing.assert_close(chosen.logits, full[:, 2], atol=1e-10, rtol=0)
        # Two hypotheses of each of two sentences change places within their sentence.
        twice = torch.tensor([0, 0, 1, 1])
        state = model.select(model.begin(model.encode(source, MASK)), twice)
        for t in range(2):
            state = model.step(target[:, t], state).state
        swap = torch.tensor([1, 0, 3, 3])
        one, other = model.reorder(state, swap), model.select(state, swap)
        torch.testing.assert_close(model.step(target[:, 2], one).logits, model.step(target[:, 2], other).logits)


@pytest.mark.parametrize("name", FAMILY)
def test_every_parameter_learns_and_empty_inputs_stay_finite(name):
    model = build(name).train()
    source, target = batch()
    model.head.logits(model(source, MASK, target).features).square().sum().backward()
    assert [n for n, p in model.named_parameters() if p.grad is None] == []
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())
    nothing = model(source[:, :0], MASK[:, :0], target[:, :0])
    assert nothing.features.shape[:2] == (4, 0)


def test_registry():
    texts = {"cho", "hard_monotonic", "kim", "las", "luong", "rnnsearch", "ssnt", "sutskever", "transformer"}
    known = texts | {"multi_source", "multimodal", "show_attend_tell"}
    known |= {"convolutional_attention", "copynet", "pointer_generator"}  # tested in test_copying.py
    assert {name for name, kind in models.items() if issubclass(kind, EncoderDecoder)} == known
    with pytest.raises(TypeError, match="hidden_dim"):
        models.create("cho", source_vocab=3, target_vocab=3, hiden_dim=3)
