"""Models of two texts: their equations, padding, what `record` sees of them, and that they learn."""

import pytest
import torch
from torch.nn import functional as F

from saccade import record
from saccade.models import LSTMNPair, WordByWord
from tests.oracles.recurrent import run_lstm

VOCAB, CLASSES = 17, 3
SMALL = {"vocab": VOCAB, "classes": CLASSES, "embedding_dim": 5, "hidden_dim": 7, "dropout": 0.0}
MODELS = {
    "word_by_word": lambda: WordByWord(**SMALL),
    "word_by_word_sparsemax": lambda: WordByWord(**SMALL, score="general", selection="sparsemax"),
    "word_by_word_two_vocabularies": lambda: WordByWord(**SMALL, vocab_2=19),
    "deep": lambda: LSTMNPair(**SMALL, num_layers=2),
    "deep_window": lambda: LSTMNPair(**SMALL, score="general", selection="sparsemax", window=2),
    "shallow": lambda: LSTMNPair(**SMALL, fusion="shallow", num_layers=2),
    "shallow_two_vocabularies": lambda: LSTMNPair(**SMALL, fusion="shallow", vocab_2=19),
    "word_by_word_compare": lambda: WordByWord(**SMALL, compare=True),
    "deep_compare": lambda: LSTMNPair(**SMALL, compare=True),
    "shallow_compare": lambda: LSTMNPair(**SMALL, fusion="shallow", compare=True),
}


def batch(lengths_a, lengths_b):
    torch.manual_seed(1)
    found = []
    for lengths in (lengths_a, lengths_b):
        tokens = torch.randint(4, VOCAB, (len(lengths), max(lengths)))
        mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
        found += [torch.where(mask, tokens, 0), mask]
    return found


def build(name):
    torch.manual_seed(0)
    return MODELS[name]().double()


@pytest.mark.parametrize("name", MODELS)
def test_a_row_alone_is_as_in_the_batch_and_padding_is_never_read(name):
    model, pair = build(name), batch([5, 2, 1], [3, 4, 1])
    logits = model(*pair)
    assert logits.shape == (3, CLASSES)
    for row, (a, b) in enumerate([(5, 3), (2, 4), (1, 1)]):
        alone = [each[row : row + 1, : (a if i < 2 else b)] for i, each in enumerate(pair)]
        torch.testing.assert_close(model(*alone)[0], logits[row])
    noisy = [torch.where(pair[i + 1], pair[i], 3) if i % 2 == 0 else pair[i] for i in range(4)]
    torch.testing.assert_close(model(*noisy), logits)


@pytest.mark.parametrize("name", MODELS)
def test_empty_texts_have_finite_answers_and_gradients(name):
    model = build(name)
    logits = model(*batch([3, 0, 0], [0, 2, 0]))
    logits.sum().backward()
    assert logits.isfinite().all()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("name", MODELS)
def test_what_is_recorded_is_a_map_from_one_text_to_the_other(name):
    model, pair = build(name), batch([5], [3])
    with record(model) as trace:
        model(*pair)
    across = [path for path in trace.paths if trace.joined(path).shape == (1, 1, 3, 5)]
    assert (
        across
        == {
            "word": ["attention"],
            "deep": [f"encoder_b.layers.{n}.source_attention" for n in range(2 if name == "deep" else 1)],
            "shallow": ["attention"],
        }[name.split("_")[0]]
    )
    torch.testing.assert_close(trace.joined(across[-1]).sum(-1), torch.ones(1, 1, 3, dtype=torch.float64))


def test_texts_share_their_embeddings_unless_their_vocabularies_differ():
    count = sum(p.numel() for p in MODELS["word_by_word"]().parameters())
    assert sum(p.numel() for p in MODELS["word_by_word_two_vocabularies"]().parameters()) == count + 19 * 5


def test_word_by_word_is_the_papers():
    model, (tokens_a, mask_a, tokens_b, mask_b) = build("word_by_word"), batch([5, 2], [3, 4])
    logits = model(tokens_a, mask_a, tokens_b, mask_b)
    W_h, W_r = model.attention.score.query_proj.weight.split([7, 7], dim=1)
    W_y, w = model.attention.score.key_proj.weight, model.attention.score.hidden_proj.weight[0]
    W_p, W_x = model.final_proj.weight.split([7, 7], dim=1)

    def run(layer, table, tokens, c=None):
        bias = layer.input_proj.bias + torch.cat([torch.zeros(7), layer.cell.bias, torch.zeros(14)])
        return run_lstm(table.table.weight[tokens], layer.input_proj.weight, bias, layer.cell.weight, c=c)

    for row in range(2):
        of_a = run(model.layer_a, model.embedding_a, tokens_a[row, mask_a[row]])
        of_b = run(model.layer_b, model.embedding_b, tokens_b[row, mask_b[row]], c=of_a[-1][1])
        Y, r = torch.stack([h for h, _ in of_a]), torch.zeros(7, dtype=torch.float64)
        for h, _ in of_b:
            M = torch.stack([torch.tanh(W_y @ y + W_h @ h + W_r @ r) for y in Y])
            alpha = torch.softmax(M @ w, 0)
            r = alpha @ Y + torch.tanh(model.carry_proj.weight @ r)
        expected = model.output_proj(torch.tanh(W_p @ r + W_x @ of_b[-1][0]))
        torch.testing.assert_close(logits[row], expected)


@pytest.mark.parametrize("fusion", ["deep", "shallow"])
def test_fusion(fusion):
    """The layers themselves are compared with the paper in tests/layers/test_lstmn.py."""
    model, (tokens_a, mask_a, tokens_b, mask_b) = build(fusion), batch([5], [3])
    first = model.encoder_a.tapes(tokens_a, mask_a)
    if fusion == "deep":
        states = model.encoder_b.embedding(tokens_b)
        for layer, read in zip(model.encoder_b.layers, first, strict=True):
            states = layer(states, mask_b, read).hidden
    else:
        states = model.encoder_b(tokens_b, mask_b).states
        scores = torch.stack([model.attention.score(h.view(1, 1, -1), first[-1].hidden)[0, 0] for h in states[0]])
        states = states + F.linear(scores.softmax(-1) @ first[-1].hidden, model.context_proj.weight)
    pooled = torch.cat([first[-1].hidden[0].mean(0), states[0].mean(0)])
    expected = model.output_proj(model.hidden_proj(pooled).relu())
    torch.testing.assert_close(model(tokens_a, mask_a, tokens_b, mask_b)[0], expected)


def test_what_compares_has_one_set_of_weights_and_knows_equal_texts():
    model = build("shallow_compare")
    plain = sum(p.numel() for p in LSTMNPair(**SMALL, fusion="shallow").parameters())
    own = sum(p.numel() for p in model.encoder_b.layers.parameters())
    assert sum(p.numel() for p in model.parameters()) == plain - own + 2 * 7 * 7
    tokens, mask, other, other_mask = batch([5, 3], [5, 3])
    first, second = model.encoder_a.tapes(tokens, mask), model.encoder_b.tapes(tokens, mask)
    assert torch.equal(first[-1].hidden, second[-1].hidden)
    given = []
    model.hidden_proj.register_forward_hook(lambda module, inputs, output: given.append(inputs[0]))
    model(tokens, mask, tokens, mask)
    a, b, apart, product = given[0].chunk(4, -1)
    assert torch.equal(a, b)
    assert not apart.any()
    torch.testing.assert_close(product, a * b)
    torch.testing.assert_close(a[1], first[-1].hidden[1, :3].amax(0))
    model(tokens, mask, other, other_mask)
    assert given[1].chunk(4, -1)[2].any()


@pytest.mark.parametrize("name", ["word_by_word_compare", "deep_compare"])
def test_tied_weights_stay_tied_while_they_learn(name):
    model = build(name)
    one, two = (
        (model.layer_a, model.layer_b)
        if hasattr(model, "layer_a")
        else (model.encoder_a.layers, model.encoder_b.layers)
    )
    before = {name: parameter.clone() for name, parameter in one.named_parameters()}
    optimiser = torch.optim.SGD(model.parameters(), lr=0.5)
    model(*batch([5, 2], [3, 4])).square().sum().backward()
    optimiser.step()
    own = dict(two.named_parameters())
    for key, parameter in one.named_parameters():
        assert own[key] is parameter
    assert any(not torch.equal(before[key], parameter) for key, parameter in one.named_parameters())


def test_refuses():
    with pytest.raises(ValueError, match="fusion must be 'deep' or 'shallow', got 'wide'"):
        LSTMNPair(**SMALL, fusion="wide")
    with pytest.raises(ValueError, match="needs all queries at once"):
        WordByWord(**SMALL, selection="projective_tree")


@pytest.mark.parametrize("make", [WordByWord, LSTMNPair])
def test_learns_whether_a_word_occurs_in_the_other_text(make):
    torch.manual_seed(0)
    model = make(vocab=12, classes=2, embedding_dim=24, hidden_dim=24, dropout=0.0)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    real = torch.ones(64, 4, dtype=torch.bool)

    def draw():
        texts = torch.rand(64, 8).argsort(1)[:, :4] + 4  # without repetition
        words = torch.randint(4, 12, (64, 1))
        return texts, words, (texts == words).any(1).long()

    for _ in range(150):
        texts, words, labels = draw()
        loss = F.cross_entropy(model(texts, real, words, real[:, :1]), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    texts, words, labels = draw()
    assert (model(texts, real, words, real[:, :1]).argmax(1) == labels).float().mean() > 0.95
