"""Recurrent language models: steps and pieces against whole texts, padding, what they carry, gradients."""

import pytest
import torch

from saccade.models import LSTMLanguageModel, LSTMNLanguageModel, PointerSentinel
from saccade.models.language_model import Beginnings

VOCAB = 13
KINDS = {
    "lstm": lambda **options: LSTMLanguageModel(vocab=VOCAB, dim=7, hidden_dim=11, num_layers=3, **options),
    "untied": lambda **options: LSTMLanguageModel(vocab=VOCAB, dim=7, tied=False, num_layers=1, **options),
    "pointer": lambda **options: PointerSentinel(vocab=VOCAB, dim=7, num_layers=2, window=4, **options),
    "lstmn": lambda **options: LSTMNLanguageModel(vocab=VOCAB, dim=7, num_layers=2, window=3, **options),
    "lstmn sparse": lambda **options: LSTMNLanguageModel(
        vocab=VOCAB, dim=7, score="bilinear", selection="sparsemax", **options
    ),
}
every = pytest.mark.parametrize("kind", KINDS)


def make(kind, **options):
    torch.manual_seed(3)
    return KINDS[kind](**options).eval()


def tokens_of(batch=3, length=9):
    torch.manual_seed(5)
    return torch.randint(4, 8, (batch, length))  # of few words, which repeat


def logits(model, tokens, mask=None):
    return model.head.logits(model(tokens, torch.ones_like(tokens, dtype=torch.bool) if mask is None else mask))


@every
@torch.no_grad()
def test_steps_equal_the_whole_text_and_follow_reordering(kind) -> None:
    model, tokens = make(kind), tokens_of()
    whole = logits(model, tokens).log_softmax(-1)
    state = model.begin(Beginnings(torch.zeros(3, 0, dtype=torch.bool)))
    for place in range(5):
        found = model.step(tokens[:, place], state)
        state = found.state
        torch.testing.assert_close(found.log_probs(), whole[:, place], rtol=1e-4, atol=1e-5)
    state = model.select(model.reorder(state, torch.tensor([2, 1, 0])), torch.tensor([0, 1]))  # rows 2 and 1
    for place in range(5, 9):
        found = model.step(tokens[[2, 1], place], state)
        state = found.state
        torch.testing.assert_close(found.log_probs(), whole[[2, 1], place], rtol=1e-4, atol=1e-5)


@every
@torch.no_grad()
def test_pieces_with_what_is_carried_equal_the_whole_text(kind) -> None:
    model, tokens = make(kind), tokens_of()
    whole = logits(model, tokens).log_softmax(-1)
    carried, found = {}, []
    for piece in tokens.split(4, dim=1):
        features, carried = model.read(piece, torch.ones_like(piece, dtype=torch.bool), carried)
        assert all(len(tensor) == 3 for tensor in carried.values())
        found.append(model.head.logits(features).log_softmax(-1))
    torch.testing.assert_close(torch.cat(found, 1), whole, rtol=1e-4, atol=1e-5)


@every
def test_what_is_carried_has_no_graph_and_changes_what_follows(kind) -> None:
    model, tokens = make(kind), tokens_of()
    real = torch.ones_like(tokens, dtype=torch.bool)
    _, carried = model.read(tokens, real)
    assert carried
    assert not any(tensor.requires_grad for tensor in carried.values())
    after, _ = model.read(tokens, real, carried)
    alone, _ = model.read(tokens, real)
    assert (model.head.logits(after) - model.head.logits(alone)).abs().max() > 1e-4


@every
@torch.no_grad()
def test_padding_changes_nothing_and_later_tokens_do_not_change_earlier_predictions(kind) -> None:
    model, tokens = make(kind), tokens_of()
    lengths = [4, 9, 1]
    mask = torch.arange(9) < torch.tensor(lengths)[:, None]
    together = logits(model, tokens.where(mask, torch.tensor(0)), mask).log_softmax(-1)
    for row, length in enumerate(lengths):
        alone = logits(model, tokens[row : row + 1, :length]).log_softmax(-1)
        torch.testing.assert_close(together[row : row + 1, :length], alone, rtol=1e-4, atol=1e-5)


@every
def test_every_parameter_learns(kind) -> None:
    model, tokens = make(kind), tokens_of()
    features = model(tokens[:, :-1], torch.ones_like(tokens[:, :-1], dtype=torch.bool))
    real = torch.ones_like(tokens[:, 1:], dtype=torch.bool)
    model.head.loss(features[real], tokens[:, 1:][real]).total.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().max() > 0, name


@every
def test_dropout_is_the_same_at_all_positions_and_off_in_evaluation(kind) -> None:
    model, tokens = make(kind, dropout=0.5), tokens_of()
    mask = torch.ones_like(tokens, dtype=torch.bool)
    torch.testing.assert_close(*(model.states_of(model(tokens, mask)) for _ in range(2)))
    model.train()
    states = model.states_of(model(tokens, mask))
    gone = states == 0.0
    assert 0.1 < gone.float().mean() < 0.9
    assert (gone == gone[:, :1]).all()


def test_dropped_words_and_weights() -> None:
    model, tokens = make("lstm", word_dropout=0.5, dropout=0.0), tokens_of()
    plain = model(tokens, tokens > 0)
    assert not torch.equal(model.train()(tokens, tokens > 0), plain)
    model = make("lstm", weight_drop=0.5, dropout=0.0)
    plain = model(tokens, tokens > 0)
    different = (model.train()(tokens, tokens > 0) - plain).abs().amax((0, 2))
    assert different[1:].min() > 1e-5  # the first step reads no state


def test_refusals() -> None:
    with pytest.raises(ValueError, match=r"leave task\.causal at true"):
        KINDS["lstm"](causal=False)
    with pytest.raises(ValueError, match=r"weight_drop must be from 0 to less than 1, got 1\.5"):
        KINDS["lstm"](weight_drop=1.5)
    with pytest.raises(ValueError, match="num_layers"):
        LSTMLanguageModel(vocab=VOCAB, num_layers=0)
    tokens = tokens_of()
    with pytest.raises(ValueError, match="LocalM depends on earlier steps, which are not carried"):
        LSTMNLanguageModel(vocab=VOCAB, dim=4, selection="local_m").read(tokens, tokens > 0)
