"""Encoders that give a grid of annotations."""

import pytest
import torch

from saccade.encoders import GivenEncoder, PatchEncoder, ProjectedEncoder, ResidualEncoder
from saccade.encoders.grid import GridPositions, from_patches
from saccade.fields.image import to_patches
from saccade.models.picture_encoders import make_picture_encoder

ENCODERS = {
    "residual": lambda: ResidualEncoder(patch=4, dim=10, channels=[6, 8], blocks=2),
    "patches": lambda: PatchEncoder(patch=4, dim=12, num_layers=2, num_heads=3, dropout=0.0),
}


def test_patches_are_put_together_again() -> None:
    pictures = torch.randn(2, 3, 20, 20)
    torch.testing.assert_close(from_patches(to_patches(pictures, 4), 4), pictures, rtol=0, atol=0)


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("lines", [1, 3, 5])
def test_annotations_form_a_grid_of_the_announced_size(name, lines) -> None:
    encoder = ENCODERS[name]().eval()
    source, mask = torch.randn(2, lines**2, 48), torch.ones(2, lines**2).bool()
    mask[1] = False
    found = encoder(source, mask)
    assert found.states.shape == (2, encoder.grid(4 * lines) ** 2, encoder.output_dim)
    assert encoder.positions(mask).tolist() == [found.states.shape[1], 0]
    assert found.mask.sum(1).tolist() == encoder.positions(mask).tolist()
    torch.testing.assert_close(found.summary[0], found.states[0].mean(0))
    assert encoder.source_length(int(encoder.positions(mask)[0])) >= lines**2


@pytest.mark.parametrize("name", ENCODERS)
def test_a_picture_does_not_depend_on_its_batch_or_on_training(name) -> None:
    encoder = ENCODERS[name]()
    source, mask = torch.randn(3, 9, 48), torch.ones(3, 9).bool()
    together = encoder(source, mask).states
    torch.testing.assert_close(encoder(source[1:2], mask[1:2]).states[0], together[1])
    torch.testing.assert_close(encoder.eval()(source, mask).states, together)


@pytest.mark.parametrize("name", ENCODERS)
def test_every_weight_gets_a_gradient(name) -> None:
    encoder = ENCODERS[name]()
    found = encoder(torch.randn(2, 9, 48), torch.ones(2, 9).bool())
    (found.states * torch.randn_like(found.states)).sum().backward()
    silent = [name for name, p in encoder.named_parameters() if p.grad is None]
    assert not silent


def test_equal_patches_differ_by_their_place() -> None:
    places = GridPositions(dim=8)(3, 5)
    assert places.shape == (8, 3, 5)
    torch.testing.assert_close(places[:4, :, 0], places[:4, :, 4])  # the line
    torch.testing.assert_close(places[4:, 0], places[4:, 2])  # the column
    assert len(torch.unique(places.flatten(1).T, dim=0)) == 15


def test_given_vectors_stay_as_they_are() -> None:
    source, mask = torch.randn(2, 5, 7), torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    encoder = GivenEncoder(dim=7)
    found = encoder(source, mask)
    assert found.states is source
    assert encoder.positions(mask).tolist() == [5, 3]
    torch.testing.assert_close(found.summary[1], source[1, :3].mean(0))
    with pytest.raises(ValueError, match=r"\(batch, length, 7\)"):
        encoder(source[..., :3], mask)


def test_projected_vectors_have_the_scale_of_states() -> None:
    source, mask = torch.randn(2, 5, 7), torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    encoder = ProjectedEncoder(input_dim=7, dim=4, dropout=0.5).eval()
    found = encoder(source, mask)
    assert found.states.shape == (2, 5, 4)
    assert found.states.abs().max() < 1
    torch.testing.assert_close(encoder(100 * source, mask).states, found.states, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(found.summary[1], found.states[1, :3].mean(0))
    assert encoder.positions(mask).tolist() == [5, 3]
    assert (encoder.train()(source, mask).states == 0).any()
    with pytest.raises(ValueError, match=r"\(batch, length, 7\)"):
        encoder(source[..., :3], mask)


def test_encoders_by_name_take_the_patch_of_the_field() -> None:
    assert make_picture_encoder("residual", features=48, dim=10).patch == 4
    assert make_picture_encoder("patches", features=48, dim=12).patch == 4
    assert make_picture_encoder("given", features=50, dim=12).output_dim == 50
    assert make_picture_encoder("projected", features=50, dim=12, dropout=0.3).dropout == 0.3
    with pytest.raises(ValueError, match="patches of 3 colours"):
        make_picture_encoder("residual", features=50, dim=10)
    with pytest.raises(ValueError, match="must be the field image"):
        make_picture_encoder("residual", features=None, dim=10)
    with pytest.raises(ValueError, match="Did you mean 'residual'"):
        make_picture_encoder("resdual", features=48, dim=10)


def test_what_is_no_picture_is_refused() -> None:
    encoder = ENCODERS["residual"]()
    for shape in ((2, 8, 48), (2, 9, 47)):
        with pytest.raises(ValueError, match="patches of square pictures"):
            encoder(torch.randn(shape), torch.ones(shape[:2]).bool())
    with pytest.raises(ValueError, match="even"):
        ResidualEncoder(patch=4, dim=7)
    with pytest.raises(ValueError, match="at least one stage"):
        ResidualEncoder(patch=4, dim=8, channels=[])
    with pytest.raises(ValueError, match="multiple"):
        PatchEncoder(patch=4, dim=10, num_heads=4)
