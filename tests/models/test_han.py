"""The hierarchical network against the paper's equations, padded computation and one document at a time."""

import time

import pytest
import torch
from torch import nn

import saccade
from saccade.layers.packing import length_blocks
from saccade.models import HAN
from saccade.selections import Sparsemax
from tests.oracles.recurrent import run_gru_before, run_lstm

SMALL = {"vocab": 23, "classes": 3, "embedding_dim": 7, "hidden_dim": 5, "context_dim": 11, "dropout": 0.0}
LENGTHS = torch.tensor([[3, 0, 6, 1], [2, 2, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0]])
"""Documents with an empty sentence, with padding, with nothing, and with one word."""


def model(**options):
    torch.manual_seed(0)
    made = HAN(**{**SMALL, **options}).double().eval()
    for parameter in made.parameters():
        parameter.data.normal_(0.0, 0.5)
    return made


def documents(lengths=LENGTHS, vocab=23):
    mask = torch.arange(max(1, int(lengths.max()))) < lengths.unsqueeze(-1)
    return torch.randint(4, vocab, mask.shape, generator=torch.Generator().manual_seed(3)) * mask, mask


def both_ways(layer, inputs):
    """The states of a bidirectional GRU or LSTM, by the paper's equations."""
    n = layer.cell.hidden_dim
    gates = layer.cell.gates * n
    states = []
    for number, cell in enumerate(layer.cells):
        W, b = (tensor[number * gates :][:gates] for tensor in (layer.input_proj.weight, layer.input_proj.bias))
        b = b.clone()
        read = inputs[::-1] if number else inputs
        if cell.gates == 4:
            b[n : 2 * n] += cell.bias
            found = [h for h, _ in run_lstm(read, W, b, cell.weight)]
        else:
            found = run_gru_before(read, W, b, cell.weight)
        states.append(found[::-1] if number else found)
    return [torch.cat(pair) for pair in zip(*states, strict=True)]


def attend(score, states):
    W, b, u = score.key_proj.weight, score.key_proj.bias, score.hidden_proj.weight[0]
    weights = torch.stack([u @ torch.tanh(W @ h + b) for h in states]).exp()
    weights = weights / weights.sum()
    return sum(weight * h for weight, h in zip(weights, states, strict=True))


POOLINGS = {
    "average": lambda score, states: torch.stack(states).mean(0),
    "max": lambda score, states: torch.stack(states).amax(0),
    "attention": attend,
}


@torch.no_grad()
@pytest.mark.parametrize("cell", ["paper_gru", "lstm"])
@pytest.mark.parametrize("words", POOLINGS)
@pytest.mark.parametrize("sentences", POOLINGS)
def test_equations(cell, words, sentences):
    han = model(cell=cell, word_pooling=words, sentence_pooling=sentences)
    tokens, mask = documents()
    logits = han(tokens, mask)

    def score_of(level):
        return None if level.pooling is None else level.pooling.score

    for row in range(len(tokens)):
        vectors = []
        for sentence, real in zip(tokens[row], mask[row], strict=True):
            if real.any():
                states = both_ways(han.words.encoder.layers[0], list(han.embedding.weight[sentence[real]]))
                vectors.append(POOLINGS[words](score_of(han.words), states))
        document = torch.zeros(10, dtype=torch.double)
        if vectors:
            states = both_ways(han.sentences.encoder.layers[0], vectors)
            document = POOLINGS[sentences](score_of(han.sentences), states)
        expected = han.output_proj.weight @ document + han.output_proj.bias
        torch.testing.assert_close(logits[row], expected)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize("selection", ["softmax", "sparsemax", "linear_chain"])
@pytest.mark.parametrize("pooling", ["attention", "max"])
def test_packed_equals_padded(cell, selection, pooling):
    han = model(cell=cell, selection=selection, score="additive", word_pooling=pooling)
    lengths = torch.randint(0, 40, (5, 13), generator=torch.Generator().manual_seed(1))
    tokens, mask = documents(lengths)
    assert len(length_blocks(lengths.flatten())) > 1
    real = mask.flatten(0, 1).any(1)

    def padded(tokens, lengths):
        rows = torch.arange(tokens.shape[1]) < lengths.unsqueeze(1)
        return han.words(han.embedding(tokens), rows)[real]

    grads = []
    for encode in (han.encode_sentences, padded):
        han.zero_grad()
        vectors = encode(tokens.flatten(0, 1), lengths.flatten())
        (vectors * torch.linspace(-1, 1, vectors.numel()).view_as(vectors)).sum().backward()
        grads.append(
            (vectors.detach(), [p.grad.clone() for p in (*han.embedding.parameters(), *han.words.parameters())])
        )
    torch.testing.assert_close(grads[0], grads[1])


def test_a_batch_equals_one_by_one():
    han = model()
    tokens, mask = documents()
    logits = han(tokens, mask)
    for row in range(len(tokens)):
        torch.testing.assert_close(han(tokens[row : row + 1], mask[row : row + 1]), logits[row : row + 1])
    wider = [nn.functional.pad(tensor, (0, 2, 0, 3)) for tensor in (tokens, mask)]
    torch.testing.assert_close(han(*wider), logits)


def test_empty_sentences_change_nothing_and_gradients_are_finite():
    han = model()
    tokens, mask = documents()
    kept = mask[0].any(-1)
    torch.testing.assert_close(han(tokens[:1], mask[:1]), han(tokens[:1, kept], mask[:1, kept]))
    torch.testing.assert_close(han(tokens, mask)[2], han.output_proj.bias)
    han(tokens, mask).sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in han.parameters())
    with saccade.record(han) as trace:
        han(tokens[2:3], mask[2:3])
    assert trace.paths == ["sentences.pooling"]
    assert not trace["sentences.pooling"].weights.any()


def test_parts_by_name_and_instance_at_each_level():
    han = model(score="additive", selection=Sparsemax(), sentence_score="scaled_dot", sentence_selection="entmax15")
    assert [type(level.pooling.score).__name__ for level in (han.words, han.sentences)] == [
        "AdditiveScore",
        "ScaledDotScore",
    ]
    assert [type(level.pooling.selection).__name__ for level in (han.words, han.sentences)] == ["Sparsemax", "Entmax15"]
    with saccade.record(han) as trace:
        han(*documents())
    assert trace.paths == ["words.pooling", "sentences.pooling"]
    assert (trace["words.pooling"].weights == 0).any()


def test_the_paper_has_these_parameters():
    han = HAN(vocab=1000, classes=5)
    level = 100 * 100 + 100 + 100
    words, sentences = (2 * 3 * 50 * (given + 50 + 1) + 2 * 50 + level for given in (200, 100))
    assert sum(p.numel() for p in han.parameters()) == 1000 * 200 + words + sentences + 100 * 5 + 5


def test_ten_thousand_sentences():
    han = HAN(**SMALL).eval()
    lengths = torch.randint(1, 9, (1, 10_000), generator=torch.Generator().manual_seed(2))
    lengths[0, 4321] = 500
    started = time.perf_counter()
    with torch.no_grad():
        assert han(*documents(lengths)).isfinite().all()
    assert time.perf_counter() - started < 30


def test_a_text_is_no_document():
    with pytest.raises(
        ValueError, match=r"HAN reads documents, \(batch, sentences, words\), got \(2, 5\): use the field"
    ):
        HAN(**SMALL)(torch.zeros(2, 5, dtype=torch.long), torch.ones(2, 5, dtype=torch.bool))
