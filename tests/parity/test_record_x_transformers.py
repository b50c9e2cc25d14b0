"""What is recorded of x-transformers is what it returns itself."""

import pytest
import torch

import saccade

x_transformers = pytest.importorskip("x_transformers", reason="the peer `x-transformers` is not installed")

TOKENS, LENGTH, HEADS = 31, 11, 4


def model(flash, **options):
    layers = x_transformers.Decoder(
        dim=24, depth=2, heads=HEADS, attn_dim_head=6, attn_dropout=0.3, attn_flash=flash, **options
    )
    return x_transformers.TransformerWrapper(num_tokens=TOKENS, max_seq_len=17, attn_layers=layers).eval()


@torch.no_grad()
@pytest.mark.parametrize("options", [{}, {"attn_kv_heads": 2}, {"alibi_pos_bias": True}], ids=str)
@pytest.mark.parametrize("flash", [False, True])
def test_decoder(flash, options):
    plain, other = model(False, **options), model(flash, **options)
    other.load_state_dict(plain.state_dict())
    tokens = torch.randint(0, TOKENS, (3, LENGTH))
    mask = torch.arange(LENGTH) < torch.tensor([11, 7, 5])[:, None]
    with saccade.record(other) as trace:
        output = other(tokens, mask=mask)
    assert torch.equal(output, other(tokens, mask=mask))
    _, expected = plain(tokens, mask=mask, return_attn=True)
    assert len(trace) == len(expected) == 2
    for call, weights in zip(trace.values(), expected, strict=True):
        assert call.shape == (3, HEADS, LENGTH, LENGTH)
        torch.testing.assert_close(call.weights, weights, rtol=0, atol=1e-5)
