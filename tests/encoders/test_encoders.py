import pytest
import torch
from torch import nn

from saccade import Attention
from saccade.encoders import AttendedEncoder, ConvolutionalEncoder, EmbeddingEncoder, LSTMNEncoder, RecurrentEncoder
from saccade.encoders.base import mean_of_real, top_of
from saccade.layers import TokenEmbedding
from saccade.models import Transformer
from saccade.scores import AdditiveScore, ScaledDotScore
from saccade.selections import NonProjectiveTree, ProjectiveTree, Softmax

LENGTHS = torch.tensor([5, 2, 0])
MASK = torch.arange(5) < LENGTHS[:, None]


def embedding(dim, **options):
    return TokenEmbedding(vocab_size=13, dim=dim, **options)


def attended(selection, **options):
    network = RecurrentEncoder(embedding=nn.Identity(), input_dim=7, hidden_dim=3, cell="lstm", bidirectional=True)
    attention = Attention(score=AdditiveScore(query_dim=6, key_dim=6, hidden_dim=11), selection=selection)
    return AttendedEncoder(embedding=embedding(7), dim=7, network=network, attention=attention, **options)


ENCODERS = {
    "attended": lambda: attended(Softmax()),
    "attended_tree": lambda: attended(ProjectiveTree(), rooted=True),
    "embedding": lambda: EmbeddingEncoder(embedding=embedding(7, positions="sinusoidal"), dim=7),
    "convolutional": lambda: ConvolutionalEncoder(embedding=embedding(7), dim=7, num_layers=2),
    "gru": lambda: RecurrentEncoder(embedding=embedding(3), input_dim=3, hidden_dim=7, num_layers=2),
    "bi_lstm": lambda: RecurrentEncoder(
        embedding=embedding(3), input_dim=3, hidden_dim=5, num_layers=2, cell="lstm", bidirectional=True
    ),
    "lstmn": lambda: LSTMNEncoder(embedding=embedding(3), input_dim=3, hidden_dim=7, num_layers=2),
    "lstmn_window": lambda: LSTMNEncoder(embedding=embedding(3), input_dim=3, hidden_dim=7, score="general", window=2),
    "reversed": lambda: RecurrentEncoder(
        embedding=embedding(3), input_dim=3, hidden_dim=7, cell="paper_gru", reversed=True
    ),
    "transformer": lambda: Transformer(source_vocab=13, target_vocab=11, dim=6, num_heads=2, encoder_layers=2).encoder,
}


@pytest.mark.parametrize("name", ENCODERS)
def test_a_row_alone_is_as_in_the_batch_and_padding_is_never_read(name):
    torch.manual_seed(0)
    encoder = ENCODERS[name]().double().eval()
    source = torch.randint(4, 13, (3, 5))
    encoded = encoder(source, MASK)
    assert encoded.states.shape == (3, 5, encoder.output_dim)
    assert top_of(encoded.summary).shape == (3, encoder.summary_dim)
    assert not top_of(encoded.summary)[2].any()
    other = encoder(torch.where(MASK, source, 3), MASK)
    torch.testing.assert_close(other.states[MASK], encoded.states[MASK])
    torch.testing.assert_close(other.summary, encoded.summary)
    alone = encoder(source[1:2, :2], MASK[1:2, :2])
    torch.testing.assert_close(alone.states[0], encoded.states[1, :2])
    torch.testing.assert_close(top_of(alone.summary)[0], top_of(encoded.summary)[1])


@pytest.mark.parametrize("name", ENCODERS)
def test_an_empty_batch_of_tokens(name):
    encoded = ENCODERS[name]().eval()(torch.zeros(3, 0, dtype=torch.long), torch.zeros(3, 0, dtype=torch.bool))
    assert encoded.states.shape[:2] == (3, 0)
    assert not top_of(encoded.summary).any()


def test_reversed_reads_backwards_but_keeps_places():
    torch.manual_seed(0)
    backwards = ENCODERS["reversed"]().double()
    forwards = ENCODERS["reversed"]().double()
    forwards.load_state_dict(backwards.state_dict())
    forwards.reversed = False
    source = torch.randint(4, 13, (1, 5))
    ours = backwards(source, MASK[:1])
    theirs = forwards(source.flip(1), MASK[:1])
    torch.testing.assert_close(ours.states, theirs.states.flip(1))
    torch.testing.assert_close(ours.summary, theirs.summary)


def test_mean_of_real():
    states = torch.tensor([[[1.0], [3.0], [9.0]]])
    assert mean_of_real(states, torch.tensor([[True, True, False]])).item() == 2.0


def test_convolution_sees_as_far_as_its_layers():
    torch.manual_seed(0)
    encoder = ENCODERS["convolutional"]().eval()
    source = torch.randint(4, 13, (1, 9))
    mask = torch.ones(1, 9, dtype=torch.bool)
    changed = source.clone()
    changed[0, 8] = 4 if source[0, 8] != 4 else 5
    differs = (encoder(source, mask).states != encoder(changed, mask).states).any(-1)[0]
    assert differs.tolist() == [False] * 6 + [True] * 3


def test_refuses_what_contradicts_itself():
    with pytest.raises(ValueError, match="reversed"):
        RecurrentEncoder(embedding=embedding(3), input_dim=3, hidden_dim=7, bidirectional=True, reversed=True)


@pytest.mark.parametrize(
    "selection", [Softmax(), ProjectiveTree(), NonProjectiveTree()], ids=lambda s: type(s).__name__
)
def test_attended_states_are_embeddings_beside_what_they_read(selection):
    torch.manual_seed(0)
    encoder = attended(selection).double().eval()
    source = torch.randint(4, 13, (3, 5))
    states = encoder(source, MASK).states
    assert encoder.output_dim == 14
    for row, length in enumerate(LENGTHS.tolist()):
        if not length:
            continue
        x = encoder.embedding(source[row : row + 1, :length])
        h = encoder.network(x, MASK[row : row + 1, :length]).states
        scores = encoder.attention.score(h, h)
        weights = selection(scores).marginals[0]
        torch.testing.assert_close(states[row, :length, :7], x[0])
        torch.testing.assert_close(states[row, :length, 7:], weights @ x[0])


@pytest.mark.parametrize("selection", [ProjectiveTree(), NonProjectiveTree()], ids=lambda s: type(s).__name__)
def test_the_first_token_is_the_root(selection):
    torch.manual_seed(0)
    encoder = attended(selection, rooted=True).double().eval()
    source = torch.randint(4, 13, (3, 5))
    read = []
    encoder.attention.register_forward_hook(lambda module, inputs, reading: read.append(reading.weights))
    states = encoder(source, MASK).states
    for row, length in enumerate(LENGTHS.tolist()):
        weights = read[0][row, :length, :length]
        torch.testing.assert_close(weights.diagonal(), (torch.arange(length) == 0).to(weights.dtype))
        torch.testing.assert_close(weights.sum(-1), torch.ones(length, dtype=weights.dtype))
        assert not read[0][row, :, length:].any()
    torch.testing.assert_close(states[:2, 0, 7:], states[:2, 0, :7])  # it reads itself


def test_a_tree_below_the_first_token_by_enumeration():
    """Three tokens: 2 and 3 hang on the first, or one on the other."""
    torch.manual_seed(0)
    network = EmbeddingEncoder(embedding=nn.Identity(), dim=7)
    attention = Attention(score=ScaledDotScore(), selection=ProjectiveTree())
    encoder = AttendedEncoder(embedding=embedding(7), dim=7, network=network, attention=attention, rooted=True).double()
    source = torch.tensor([[4, 9, 12]])
    x = encoder.embedding(source)[0]
    s = x @ x.T / 7**0.5
    trees = {(0, 0): s[1, 0] + s[2, 0], (0, 1): s[1, 0] + s[2, 1], (2, 0): s[1, 2] + s[2, 0]}
    odds = torch.stack(list(trees.values())).softmax(0)
    parents = [sum(p * x[tree[child]] for tree, p in zip(trees, odds, strict=True)) for child in (0, 1)]
    context = encoder(source, torch.ones(1, 3, dtype=torch.bool)).states[0, :, 7:]
    torch.testing.assert_close(context, torch.stack([x[0], *parents]))
