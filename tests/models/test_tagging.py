"""The tagging model: its equation as a loop, and padding that changes nothing."""

import math

import pytest
import torch

from saccade.models import Tagger, models

SIZES = {"vocab": 13, "classes": 3, "embedding_dim": 5, "hidden_dim": 7}


def test_reachable_by_short_name():
    assert models.get("tagging") is Tagger


def test_every_state_attends_to_every_state():
    model = Tagger(**SIZES).double().eval()
    tokens = torch.tensor([[4, 9, 2, 11, 6]])
    found = model(tokens, torch.ones(1, 5, dtype=torch.bool))[0]
    h = model.encoder(tokens, torch.ones(1, 5, dtype=torch.bool)).states[0].tolist()
    weight, bias = model.output_proj.weight.tolist(), model.output_proj.bias.tolist()
    for i, query in enumerate(h):
        scores = [sum(a * b for a, b in zip(query, key, strict=True)) / math.sqrt(14) for key in h]
        norm = sum(map(math.exp, scores))
        context = [sum(math.exp(s) / norm * key[d] for s, key in zip(scores, h, strict=True)) for d in range(14)]
        features = [*query, *context]
        for k in range(3):
            wanted = bias[k] + sum(w * f for w, f in zip(weight[k], features, strict=True))
            assert found[i, k].item() == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("encoder", ["birnn", "rnn", "convolutional", "embedding"])
@pytest.mark.parametrize("score", ["additive", "scaled_dot"])
def test_padding_changes_nothing(encoder, score):
    model = Tagger(**SIZES, encoder=encoder, score=score, selection="sparsemax").double().eval()
    tokens = torch.tensor([[4, 9, 2, 0, 0], [3, 3, 5, 7, 1]])
    mask = torch.tensor([[True] * 3 + [False] * 2, [True] * 5])
    together = model(tokens, mask)
    assert together.shape == (2, 5, 3)
    torch.testing.assert_close(together[0, :3], model(tokens[:1, :3], mask[:1, :3])[0])


def test_a_misspelt_encoder_is_named():
    with pytest.raises(ValueError, match="Did you mean 'birnn'"):
        Tagger(**SIZES, encoder="birn")
