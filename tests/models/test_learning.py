"""Every family learns a small task from nothing and writes the answers by itself; its slower variants do so too."""

import pytest
import torch
from torch.nn import functional as F

from saccade import selections
from saccade.models import Cho, HardMonotonic, Luong, RNNSearch, SegmentToSegment, Sutskever, Transformer

SYMBOLS, SHORTEST = 8, 2
BOS, EOS = 1, 2
VOCAB = {"source_vocab": 4 + SYMBOLS, "target_vocab": 4 + SYMBOLS}
RNN = {**VOCAB, "embedding_dim": 24, "hidden_dim": 48}
LAYERS = {**RNN, "num_layers": 1}
HEADS = {**VOCAB, "dim": 32, "num_heads": 2, "encoder_layers": 1, "feed_forward_dim": 64, "dropout": 0.0}
slow = pytest.mark.slow


def batch(task, size, longest=6):
    """Source, its mask, and the target between the start and the end token."""
    lengths = torch.randint(SHORTEST, longest + 1, (size, 1))
    mask = torch.arange(longest) < lengths
    source = torch.randint(4, 4 + SYMBOLS, (size, longest)) * mask
    if task == "copy":
        content = source
    elif task == "reverse":
        content = source.gather(1, torch.where(mask, lengths - 1 - torch.arange(longest), torch.arange(longest)))
    else:
        content = torch.where(mask, source, 999).sort(1).values * mask
    target = torch.cat([torch.full((size, 1), BOS), content, torch.zeros(size, 1, dtype=torch.long)], dim=1)
    target[torch.arange(size), lengths[:, 0] + 1] = EOS
    return source, mask, target


@torch.no_grad()
def accuracy(model, task, longest):
    """Of the tokens that greedy search writes, the end included."""
    model.eval()
    source, mask, target = batch(task, 256, longest)
    state, tokens, right = model.begin(model.encode(source, mask)), target[:, 0], []
    for t in range(1, target.shape[1]):
        step = model.step(tokens, state)
        state, tokens = step.state, step.logits.argmax(-1)
        right.append(tokens == target[:, t])
    model.train()
    return torch.stack(right, dim=1)[target[:, 1:] != 0].float().mean().item()


def learn(model, task, *, rate=5e-3, most=1200, longest=6):
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    reached = 0.0
    for step in range(1, most + 1):
        source, mask, target = batch(task, 64, longest)
        real = target[:, 1:] != 0
        if hasattr(model, "alignment"):
            alignment = model.alignment(source, mask, target[:, :-1], target[:, 1:], real)
            loss = -alignment.log_likelihood.sum() / real.sum()
        else:
            features = model(source, mask, target[:, :-1]).features[real]
            loss = F.cross_entropy(model.head.logits(features), target[:, 1:][real])
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        if step % 50 == 0:
            reached = accuracy(model, task, longest)
            if reached >= 0.97:
                break
    return reached


@pytest.mark.parametrize("model", [Cho, Sutskever])
def test_without_attention(model):
    torch.manual_seed(0)
    options = {} if model is Cho else {"num_layers": 1}
    assert learn(model(**RNN, **options), "copy", longest=4) >= 0.95


@pytest.mark.parametrize("cell", ["paper", "fast"])
@pytest.mark.parametrize(
    "encoder", ["birnn", pytest.param("convolutional", marks=slow), pytest.param("embedding", marks=slow)]
)
def test_rnnsearch(cell, encoder):
    torch.manual_seed(0)
    assert learn(RNNSearch(**RNN, cell=cell, encoder=encoder), "reverse") >= 0.95


@pytest.mark.parametrize("selection", ["linear_chain", selections.Sigmoid(mass=2.0)])
def test_rnnsearch_that_reads_several_words(selection):
    torch.manual_seed(0)
    assert learn(RNNSearch(**RNN, cell="fast", selection=selection), "reverse") >= 0.95


@pytest.mark.parametrize("order", [0, 1, None])
def test_hard_alignments(order):
    torch.manual_seed(0)
    model = HardMonotonic(**RNN, order=order, width=3, encoder_layers=1, cell="gru")
    assert learn(model, "reverse" if order is None else "copy") >= 0.95


@pytest.mark.parametrize("model", [SegmentToSegment, HardMonotonic])
def test_online(model):
    """Position by position, by an encoder that has not seen what comes: accuracy is that of what it writes itself."""
    torch.manual_seed(0)
    assert learn(model(**RNN, encoder_layers=1, cell="gru", online=True), "copy") >= 0.95


@pytest.mark.parametrize("feeding", [True, False])
@pytest.mark.parametrize(
    ("score", "selection", "task"),
    [
        ("location", "softmax", "reverse"),
        ("dot", "softmax", "reverse"),
        ("general", "softmax", "reverse"),
        ("concat", "softmax", "reverse"),
        pytest.param("dot", "local_m", "copy", marks=slow),
        pytest.param("general", "local_m", "copy", marks=slow),
        pytest.param("dot", "local_p", "reverse", marks=slow),
        ("general", "local_p", "reverse"),
    ],
)
def test_luong(score, selection, task, feeding):
    torch.manual_seed(0)
    model = Luong(**LAYERS, score=score, selection=selection, half_width=2, input_feeding=feeding)
    assert learn(model, task) >= 0.95


@slow
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "relative", "alibi"])
def test_transformer_with_every_kind_of_position(positions):
    torch.manual_seed(0)
    model = Transformer(**{**HEADS, "encoder_layers": 2}, positions=positions)
    assert learn(model, "sort", rate=3e-3, most=3000) >= 0.95


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"score": "additive"}, marks=slow),
        pytest.param({"selection": "sparsemax"}, marks=slow),
        {"selection": selections.Entmax15()},
        {"norm": "post"},
    ],
)
def test_transformer_with_other_heads(parts):
    torch.manual_seed(0)
    assert learn(Transformer(**HEADS, **parts), "copy", rate=3e-3) >= 0.95
