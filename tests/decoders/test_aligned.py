"""Decoders each word of which comes from one source position."""

import pytest
import torch

from saccade.models import HardMonotonic

SIZES = {"source_vocab": 9, "target_vocab": 7, "embedding_dim": 4, "hidden_dim": 5, "encoder_layers": 1}


def untrained(**options):
    torch.manual_seed(0)
    return HardMonotonic(**SIZES, **options).eval()


def test_untrained_models_of_order_zero_are_not_at_the_end_after_a_few_words():
    model = untrained(order=0)
    encoded = model.encode(torch.randint(3, 9, (2, 30)), torch.ones(2, 30, dtype=torch.bool))
    weights = model.decoder(encoded, torch.full((2, 8), 3)).weights
    reached = (weights * torch.arange(30)).sum(-1)
    assert (reached.diff(dim=1) > 0).all()
    assert (reached[:, -1] < 15).all()  # halving what is left, as without a slope, would be at 29


def test_every_step_is_told_the_summary_unless_it_is_not_there_yet():
    source, mask = torch.randint(3, 9, (2, 6)), torch.ones(2, 6, dtype=torch.bool)
    tokens = torch.full((2, 4), 3)
    for online in (False, True):
        model = untrained(order=1, online=online)
        encoded = model.encode(source, mask)
        other = encoded._replace(summary=model.encode(source.flip(1), mask).summary)
        logits, changed = (model.head.logits(model.decoder(e, tokens).features) for e in (encoded, other))
        assert torch.equal(logits, changed) == online


def test_a_large_summary_does_not_drown_the_words():
    """It reaches the recurrent network at every step, the same each time: unbounded, it fills up every gate."""
    model = untrained(order=1)
    encoded = model.encode(torch.randint(3, 9, (1, 6)), torch.ones(1, 6, dtype=torch.bool))
    one, other = torch.tensor([[1, 3, 4]]), torch.tensor([[1, 5, 6]])
    with torch.no_grad():
        model.decoder.summary_proj.weight.mul_(1e4)
        readout, changed = (model.decoder(encoded, tokens).features[:, 2, :, :-1] for tokens in (one, other))
    assert (readout - changed).abs().max() > 1e-3


@pytest.mark.parametrize("order", [0, 1, None])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_precision_is_that_of_the_model_or_more(order, dtype):
    source, mask = torch.randint(3, 9, (2, 6)), torch.ones(2, 6, dtype=torch.bool)
    tokens, steps = torch.full((2, 4), 3), torch.ones(2, 4, dtype=torch.bool)
    half, exact = untrained(order=order).to(dtype), untrained(order=order).double()
    logits, expected = (model.head.logits(model(source, mask, tokens).features) for model in (half, exact))
    assert logits.isfinite().all()
    torch.testing.assert_close(logits.double(), expected, atol=0.1, rtol=0.1)
    step = half.step(tokens[:, 0], half.begin(half.encode(source, mask)))
    torch.testing.assert_close(step.logits.double(), expected[:, 0], atol=0.1, rtol=0.1)
    likelihood = exact.alignment(source, mask, tokens, tokens, steps).log_likelihood
    assert likelihood.dtype == torch.float64
    single = untrained(order=order).alignment(source, mask, tokens, tokens, steps).log_likelihood
    torch.testing.assert_close(single.double(), likelihood, atol=1e-4, rtol=1e-4)
