"""The pyramidal encoder against its equation, layer by layer."""

import pytest
import torch
from torch import nn

from saccade.encoders import PyramidalEncoder, encoders
from saccade.layers import FeatureEmbedding, TokenEmbedding

LENGTHS = [11, 4, 1, 0]
MASK = torch.arange(11) < torch.tensor(LENGTHS)[:, None]


def test_layers_read_pairs_of_states() -> None:
    torch.manual_seed(0)
    encoder = PyramidalEncoder(input_dim=3, hidden_dim=5, factors=[2, 2]).double()
    source = torch.randn(1, 11, 3).double()
    states = source[0]
    for number, layer in enumerate(encoder.layers):
        if number:
            states = torch.cat([states, states.new_zeros(len(states) % 2, states.shape[1])])
            states = torch.stack([torch.cat([states[i], states[i + 1]]) for i in range(0, len(states), 2)])
        reference = nn.LSTM(states.shape[1], 5, bidirectional=True, batch_first=True).double()
        projected = layer.input_proj.weight.chunk(2), layer.input_proj.bias.chunk(2)
        for way, suffix in enumerate(("", "_reverse")):
            cell = layer.cells[way]
            bias = projected[1][way] + nn.functional.pad(cell.bias, (5, 10))
            for name, value in (("weight_ih", projected[0][way]), ("weight_hh", cell.weight), ("bias_ih", bias)):
                getattr(reference, f"{name}_l0{suffix}").data.copy_(value)
            getattr(reference, f"bias_hh_l0{suffix}").data.zero_()
        states = reference(states[None])[0][0]
    encoded = encoder(source, torch.ones(1, 11, dtype=torch.bool))
    torch.testing.assert_close(encoded.states[0], states)
    assert encoded.states.shape == (1, 3, 10)
    assert len(encoded.summary) == 3


@pytest.mark.parametrize("factor", [2, 3])
def test_a_row_alone_is_as_in_the_batch_and_padding_is_never_read(factor) -> None:
    torch.manual_seed(0)
    encoder = PyramidalEncoder(input_dim=3, hidden_dim=5, factors=(factor, 1, factor), cell="gru").double()
    source = torch.randn(4, 11, 3).double()
    encoded = encoder(source, MASK)
    lengths = [-(-length // factor**2) for length in LENGTHS]
    assert encoded.mask.sum(1).tolist() == encoder.positions(MASK).tolist() == lengths
    other = encoder(torch.where(MASK[..., None], source, torch.nan), MASK)
    torch.testing.assert_close(other.states[encoded.mask], encoded.states[encoded.mask])
    for row, length in enumerate(LENGTHS):
        alone = encoder(source[row : row + 1, :length], MASK[row : row + 1, :length])
        torch.testing.assert_close(alone.states[0], encoded.states[row, : lengths[row]])
        torch.testing.assert_close(alone.summary[-1][0][0], encoded.summary[-1][0][row])


def test_how_many_frames_fill_its_positions() -> None:
    frames = FeatureEmbedding(input_dim=3, dim=7, stride=3)
    encoder = encoders.create("pyramidal", embedding=frames, input_dim=7, hidden_dim=5, factors=[2, 2])
    assert encoder.stride == 12
    assert encoder.source_length(5) == 60
    assert encoder(torch.randn(1, 25, 3), torch.ones(1, 25, dtype=torch.bool)).states.shape == (1, 3, 10)
    tokens = PyramidalEncoder(embedding=TokenEmbedding(vocab_size=13, dim=7), input_dim=7, hidden_dim=5, factors=[2])
    assert tokens.source_length(5) == 9
    flat = PyramidalEncoder(input_dim=3, hidden_dim=5, factors=[], bidirectional=False)
    assert flat(torch.randn(1, 25, 3), torch.ones(1, 25, dtype=torch.bool)).states.shape == (1, 25, 5)


def test_wrong_sources_and_arguments() -> None:
    with pytest.raises(ValueError, match=r"source must be floating point, \(batch, length, 3\), got .*int64"):
        PyramidalEncoder(input_dim=3, hidden_dim=5)(torch.zeros(1, 4, dtype=torch.long), MASK[:1, :4])
    for arguments in ({"factors": [2, 0]}, {"dropout": 1.0}):
        with pytest.raises(ValueError, match=next(iter(arguments))):
            PyramidalEncoder(input_dim=3, hidden_dim=5, **arguments)
