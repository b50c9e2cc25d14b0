import pytest
import torch

from saccade.encoders import ConvolutionalEncoder, EmbeddingEncoder, RecurrentEncoder
from saccade.encoders.base import mean_of_real, top_of
from saccade.layers import TokenEmbedding
from saccade.models import Transformer

LENGTHS = torch.tensor([5, 2, 0])
MASK = torch.arange(5) < LENGTHS[:, None]


def embedding(dim, **options):
    return TokenEmbedding(vocab_size=13, dim=dim, **options)


ENCODERS = {
    "embedding": lambda: EmbeddingEncoder(embedding=embedding(7, positions="sinusoidal"), dim=7),
    "convolutional": lambda: ConvolutionalEncoder(embedding=embedding(7), dim=7, num_layers=2),
    "gru": lambda: RecurrentEncoder(embedding=embedding(3), input_dim=3, hidden_dim=7, num_layers=2),
    "bi_lstm": lambda: RecurrentEncoder(
        embedding=embedding(3), input_dim=3, hidden_dim=5, num_layers=2, cell="lstm", bidirectional=True
    ),
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
