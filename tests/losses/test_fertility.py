import pytest
import torch

from saccade.losses import GlobalFertility

from .examples import BATCH, KEYS, assert_padding_does_not_matter, assert_reductions, example, valid

KEY_DIM = 11


def made():
    torch.manual_seed(0)
    fertility = GlobalFertility(key_dim=KEY_DIM, hidden_dim=13).double()
    return fertility, torch.randn(BATCH, KEYS, KEY_DIM, dtype=torch.float64)


def test_equals_the_density_of_the_summed_attention():
    fertility, annotations = made()
    weights, steps, keys = example()
    items = torch.zeros(BATCH, dtype=torch.float64)
    for b in range(BATCH):
        for i in valid(b)[1]:
            hidden = torch.tanh(fertility.key_proj.weight @ annotations[b, i])
            mean, log_variance = fertility.moments_proj.weight @ hidden + fertility.moments_proj.bias
            received = sum(weights[b, t, i] for t in valid(b)[0])
            items[b] -= torch.distributions.Normal(mean, (0.5 * log_variance).exp()).log_prob(torch.as_tensor(received))
    assert_reductions(
        lambda reduction: fertility(weights, annotations, step_mask=steps, key_mask=keys, reduction=reduction),
        items.detach(),
        count=BATCH,
    )


@pytest.mark.parametrize(("bias", "held"), [(-1e4, -7.0), (1e4, 3.0)])
def test_log_variance_is_held(bias, held):
    fertility, annotations = made()
    with torch.no_grad():
        fertility.moments_proj.bias[1] = bias
    assert (fertility.moments(annotations)[1] == held).all()
    assert fertility(example()[0], annotations).isfinite()


def test_gradcheck_padding_and_half_precision():
    fertility, annotations = made()
    weights, steps, keys = example()
    inputs = [weights[1:2, :, :3].clone().requires_grad_(), annotations[1:2, :3].clone().requires_grad_()]
    assert torch.autograd.gradcheck(lambda w, h: fertility(w, h, step_mask=steps[1:2], key_mask=keys[1:2, :3]), inputs)
    assert_padding_does_not_matter(lambda w: fertility(w, annotations, step_mask=steps, key_mask=keys), *example())
    half = fertility.bfloat16()(weights.bfloat16(), annotations.bfloat16())
    assert half.dtype == torch.float32
    assert half.isfinite()


def test_refuses_keys_of_another_size():
    with pytest.raises(ValueError, match="key_dim=11"):
        made()[0](example()[0], torch.randn(BATCH, KEYS, 2).double())
