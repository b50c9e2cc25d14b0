"""Networks of transformers as backbones: equal to the library's own states."""

import pytest
import torch
from safetensors.torch import load_file, save_file

from saccade.data.errors import DataError
from saccade.encoders.backbones import TransformersBackbone
from saccade.fields import Image
from saccade.fields.features import read_backbone

transformers = pytest.importorskip("transformers")

DEEP = {"depths": [1, 1, 1, 1], "hidden_sizes": [3, 5, 6, 7]}
HEADS = {"hidden_size": 6, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 7}
NETWORKS = {  # options, the side of pictures, and the lines, columns and features of annotations
    "resnet": ({**DEEP, "embedding_size": 4, "layer_type": "basic"}, 70, 3, 7),
    "convnext": (DEEP, 70, 2, 7),
    "vit": ({**HEADS, "image_size": 48}, 48, 3, 6),
    "deit": ({**HEADS, "image_size": 48}, 48, 3, 6),
    "swin": ({"embed_dim": 4, "depths": [1, 1], "num_heads": [1, 2], "image_size": 24, "window_size": 3}, 24, 3, 8),
}


def saved(name: str, folder) -> tuple:
    """The library's network, and its state file; some have a classifier."""
    options = NETWORKS[name][0]
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(name, **options)
    plain = name in ("deit", "swin")
    made = transformers.AutoModel if plain else transformers.AutoModelForImageClassification
    full = made.from_config(config).eval()
    full.save_pretrained(folder)
    return full if plain else full.base_model, str(folder / "model.safetensors")


@torch.no_grad()
@pytest.mark.parametrize("name", list(NETWORKS))
def test_annotations_are_the_last_states(name, tmp_path) -> None:
    peer, path = saved(name, tmp_path)
    options, side, lines, dim = NETWORKS[name]
    ours = TransformersBackbone(weights=path, architecture=name, options=options).eval()
    read_backbone(ours)
    pictures = torch.randn(2, 3, side, side)
    found = ours(pictures)
    assert found.shape == (2, dim, lines, lines) == (2, ours.output_dim, ours.grid(side), ours.grid(side))
    states = peer(pictures).last_hidden_state
    for line in range(lines):
        for column in range(lines):
            # Tokens for no place, such as that of the class, come first.
            place = states.shape[1] - lines**2 + line * lines + column
            wanted = states[:, :, line, column] if states.dim() == 4 else states[:, place]
            torch.testing.assert_close(found[:, :, line, column], wanted)


def test_a_run_needs_no_other_file(tmp_path) -> None:
    _, path = saved("vit", tmp_path)
    field, other = (
        Image(
            size=48,
            backbone=TransformersBackbone(weights=weights, architecture="vit", options=NETWORKS["vit"][0]),
            features=str(tmp_path / folder),
        )
        for weights, folder in ((path, "first"), ("gone.safetensors", "second"))
    )
    assert field.grid == 3
    field.fit([])
    field.save(tmp_path)
    other.load(tmp_path)
    squares = torch.randn(1, 3, 48, 48)
    torch.testing.assert_close(other.network()(squares), field.network()(squares))


def test_a_file_that_lacks_something_is_refused(tmp_path) -> None:
    _, path = saved("vit", tmp_path)
    state = load_file(path)
    del state["vit.embeddings.position_embeddings"]
    save_file(state, path)
    with pytest.raises(DataError, match=r"lacks network\.embeddings\.position_embeddings"):
        read_backbone(TransformersBackbone(weights=path, architecture="vit", options=NETWORKS["vit"][0]))


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Unknown architecture 'resnt'\. Did you mean 'resnet'"):
        TransformersBackbone(weights="", architecture="resnt")
    with pytest.raises(ValueError, match="vit has no setting 'hidden_dim'"):
        TransformersBackbone(weights="", architecture="vit", options={"hidden_dim": 6})
    with pytest.raises(ValueError, match=r"network of .* weights"):
        TransformersBackbone(weights="", architecture="vit", options={"num_hidden_layers": 200})
    with pytest.raises(ValueError, match="image size"):
        Image(size=64, backbone=TransformersBackbone(weights="", architecture="vit", options=NETWORKS["vit"][0]))
