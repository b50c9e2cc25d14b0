"""The Transformer language model: causality, steps against whole texts, padding."""

import pytest
import torch

from saccade.models import TransformerLanguageModel
from saccade.models.language_model import Beginnings

KINDS = [
    {},
    {"positions": "learned", "norm": "post", "tied": False},
    {"positions": "rotary", "selection": "sparsemax"},
    {"positions": "relative", "score": "additive"},
    {"positions": "alibi", "selection": "entmax15"},
]


def make(causal=True, **options) -> TransformerLanguageModel:
    torch.manual_seed(3)
    given = {"vocab": 13, "dim": 12, "num_heads": 3, "num_layers": 2, "feed_forward_dim": 17, "max_length": 20}
    return TransformerLanguageModel(causal=causal, **{**given, **options}).eval()


def logits(model, tokens, mask=None):
    return model.head.logits(model(tokens, torch.ones_like(tokens, dtype=torch.bool) if mask is None else mask))


@pytest.mark.parametrize("options", KINDS)
def test_later_tokens_do_not_change_earlier_predictions(options) -> None:
    model = make(**options)
    tokens = torch.randint(4, 13, (2, 9))
    changed = tokens.clone()
    changed[:, 5:] = (changed[:, 5:] - 3) % 9 + 4
    before, after = logits(model, tokens), logits(model, changed)
    torch.testing.assert_close(before[:, :5], after[:, :5])
    assert (before[:, 5:] - after[:, 5:]).abs().max() > 1e-3


@pytest.mark.parametrize("options", KINDS)
def test_without_causality_every_token_changes_every_prediction(options) -> None:
    if options.get("selection"):
        options = {**options, "selection": "softmax"}  # a sparse one may ignore it
    model = make(causal=False, **options)
    tokens = torch.randint(4, 13, (1, 6))
    changed = tokens.clone()
    changed[:, -1] = (changed[:, -1] - 3) % 9 + 4
    assert (logits(model, tokens) - logits(model, changed)).abs().amax(-1).min() > 1e-6


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("options", KINDS)
def test_a_padded_batch_equals_one_by_one(options, causal) -> None:
    model = make(causal=causal, **options)
    lengths = [4, 9, 1]
    tokens = torch.randint(4, 13, (3, 9))
    mask = torch.arange(9) < torch.tensor(lengths)[:, None]
    together = logits(model, tokens.where(mask, torch.tensor(0)), mask)
    for row, length in enumerate(lengths):
        alone = logits(model, tokens[row : row + 1, :length])
        torch.testing.assert_close(together[row : row + 1, :length], alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", KINDS)
@torch.no_grad()
def test_steps_equal_the_whole_text_and_follow_reordering(options) -> None:
    model = make(**options)
    tokens = torch.randint(4, 13, (3, 7))
    whole = logits(model, tokens)
    state = model.begin(Beginnings(torch.zeros(3, 0, dtype=torch.bool)))
    for place in range(4):
        found, state, weights = model.step(tokens[:, place], state)
        torch.testing.assert_close(found, whole[:, place], rtol=1e-4, atol=1e-5)
        assert weights is None
    state = model.select(model.reorder(state, torch.tensor([2, 1, 0])), torch.tensor([0, 1]))  # rows 2 and 1
    for place in range(4, 7):
        found, state, _ = model.step(tokens[[2, 1], place], state)
        torch.testing.assert_close(found, whole[[2, 1], place], rtol=1e-4, atol=1e-5)


def test_limits_and_refusals() -> None:
    assert make(positions="learned").longest() == 20
    assert make().longest() is None
    with pytest.raises(ValueError, match="cannot continue a text"):
        make(causal=False).begin(Beginnings(torch.zeros(1, 0, dtype=torch.bool)))
    with pytest.raises(ValueError, match="cannot attend to a growing past"):
        make(score="convolutional")
    with pytest.raises(ValueError, match=r"Unknown positions 'rotory'.*rotary"):
        make(positions="rotory")
    with pytest.raises(ValueError, match="num_layers"):
        make(num_layers=0)
