"""Annotations by a backbone that is not trained."""

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch.nn import functional

from saccade.artifacts import ArtifactError
from saccade.data.cell import Cell
from saccade.data.errors import DataError
from saccade.data.pictures import as_png
from saccade.encoders.backbones import VGG19, Backbone, EfficientNetLite0
from saccade.fields import Image
from saccade.fields.features import read_backbone

pytest.importorskip("PIL")
pytest.importorskip("pyarrow")
CELL = Cell("table.csv", 1, "source")


class Small(Backbone):
    """One convolution, which counts how many pictures it sees."""

    output_dim, stride = 5, 4

    def __init__(self, *, weights: str) -> None:
        super().__init__(weights=weights)
        self.convolution = torch.nn.Conv2d(3, 5, 4, stride=4)
        self.seen = 0

    def forward(self, pictures):
        self.seen += len(pictures)
        return self.convolution(pictures)


@pytest.fixture
def weights(tmp_path):
    torch.manual_seed(0)
    path = str(tmp_path / "small.pth")
    torch.save({**Small(weights="").state_dict(), "head.weight": torch.zeros(3)}, path)
    return path


def made(weights, tmp_path, **options) -> Image:
    return Image(size=12, backbone=Small(weights=weights), features=str(tmp_path / "features"), **options)


def pictures(count: int) -> list:
    draws = np.random.default_rng(0)
    return [draws.integers(0, 256, (12, 17, 3), dtype=np.uint8) for _ in range(count)]


def test_each_picture_passes_once_and_the_result_is_that_of_the_backbone(weights, tmp_path) -> None:
    field = made(weights, tmp_path)
    values = [field.read(picture, CELL) for picture in pictures(5)]
    field.fit(iter([*values, *values]))
    small = field.backbone.backbone
    assert small.seen == 5
    found = field.pad([field.encode(value) for value in values])
    assert found["values"].shape == (5, 9, 5)
    assert found["mask"].all()
    assert small.seen == 5
    pixels = torch.stack([torch.tensor(each[:, 2:14]).permute(2, 0, 1) for each in pictures(5)]) / 255
    mean, deviation = (torch.tensor(t).reshape(3, 1, 1) for t in (Small.mean, Small.deviation))
    wanted = small.convolution((pixels - mean) / deviation).flatten(2).transpose(1, 2).detach()
    torch.testing.assert_close(found["values"], wanted, rtol=1e-3, atol=1e-3)
    assert field.sizes() == {"dim": 5}
    assert field.size(field.encode(values[0])) == field.longest == 9
    assert field.learned() == "3 x 3 annotations by Small of pictures of 12 x 12 pixels"
    assert field.axis(values[0]).grid == (3, 3)


def test_another_training_finds_what_is_known_and_new_pictures_are_computed_once(weights, tmp_path) -> None:
    first = made(weights, tmp_path)
    values = [first.read(picture, CELL) for picture in pictures(6)]
    first.fit(values[:4])
    again = made(weights, tmp_path)
    again.fit(values[:5])
    assert again.backbone.backbone.seen == 1
    rows = [again.encode(value) for value in values]
    torch.testing.assert_close(again.pad(rows)["values"], first.pad(rows)["values"], rtol=0, atol=1e-3)
    assert again.backbone.backbone.seen == 2
    again.pad(rows)
    assert again.backbone.backbone.seen == 2
    larger = Image(size=16, backbone=Small(weights=weights), features=str(tmp_path / "features"))
    larger.fit(values[:1])
    assert larger.backbone.backbone.seen == 1


def test_files_are_known_by_their_content(weights, tmp_path) -> None:
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(as_png(pictures(1)[0]))
    field = made(weights, tmp_path)
    values = [field.read(str(tmp_path / name), CELL) for name in ("a.png", "b.png")]
    field.fit(values)
    assert field.backbone.backbone.seen == 1
    (tmp_path / "b.png").write_bytes(as_png(pictures(2)[1]))
    field.pad([field.encode(value) for value in values])
    assert field.backbone.backbone.seen == 2


def test_a_run_keeps_the_weights(weights, tmp_path) -> None:
    field = made(weights, tmp_path)
    value = field.read(pictures(1)[0], CELL)
    field.fit([value])
    (tmp_path / "run").mkdir()
    field.save(tmp_path / "run")
    other = Image(size=12, backbone=Small(weights="gone.pth"), features=str(tmp_path / "elsewhere"))
    other.load(tmp_path / "run")
    rows = [field.encode(value)]
    torch.testing.assert_close(other.pad(rows)["values"], field.pad(rows)["values"], rtol=0, atol=1e-3)
    (tmp_path / "run" / "backbone.safetensors").write_bytes(b"damaged")
    with pytest.raises(ArtifactError):
        other.load(tmp_path / "run")


def test_without_a_private_cache_folder_models_predict_and_are_not_trained(weights, tmp_path, monkeypatch) -> None:
    field = made(weights, tmp_path)
    value = field.read(pictures(1)[0], CELL)
    field.fit([value])
    (tmp_path / "run").mkdir()
    field.save(tmp_path / "run")
    monkeypatch.setattr("saccade.fields.features.private_cache", lambda: None)
    other = Image(size=12, backbone=Small(weights=weights))
    other.load(tmp_path / "run")
    rows = [field.encode(value)]
    torch.testing.assert_close(other.pad(rows)["values"], field.pad(rows)["values"], rtol=0, atol=1e-3)
    with pytest.raises(ValueError, match="no private cache folder for annotations: set `features`"):
        other.fit([value])


def test_weight_files_that_are_none(tmp_path, weights) -> None:
    with pytest.raises(DataError, match="There is no file"):
        read_backbone(Small(weights=str(tmp_path / "gone.pth")))
    (tmp_path / "text.pth").write_bytes(b"no weights")
    with pytest.raises(DataError, match="cannot be read as the weights of Small"):
        read_backbone(Small(weights=str(tmp_path / "text.pth")))
    torch.save({"a": torch.zeros(2)}, tmp_path / "other.pth")
    with pytest.raises(DataError, match=r"lacks convolution\.weight"):
        read_backbone(Small(weights=str(tmp_path / "other.pth")))
    bad = {name: torch.full_like(each, torch.nan) for name, each in Small(weights="").state_dict().items()}
    save_file(bad, tmp_path / "nan.safetensors")
    with pytest.raises(DataError, match="NaN"):
        read_backbone(Small(weights=str(tmp_path / "nan.safetensors")))
    field = made(weights, tmp_path)
    with pytest.raises(ValueError, match="no weights yet"):
        field.pad([field.encode(field.read(pictures(1)[0], CELL))])


def test_arguments_that_make_no_sense(weights, tmp_path) -> None:
    with pytest.raises(ValueError, match="leave out random_crop and flip"):
        made(weights, tmp_path, flip=True)
    with pytest.raises(ValueError, match="name a backbone"):
        Image(features="folder")


@torch.no_grad()
def test_vgg_reads_both_spellings_of_its_state(tmp_path) -> None:
    published = VGG19(weights="").state_dict()
    bare = {name.removeprefix("features."): each for name, each in published.items()}
    torch.save(bare, tmp_path / "vgg.pth")
    ours = VGG19(weights=str(tmp_path / "vgg.pth")).eval()
    read_backbone(ours)
    plain = picture = torch.randn(1, 3, 37, 37)
    for number in range(36):  # the layers of torchvision's VGG-19 up to the activation after conv5_4
        if f"{number}.weight" in bare:
            plain = functional.conv2d(plain, bare[f"{number}.weight"], bare[f"{number}.bias"], padding=1).relu()
        elif number in (4, 9, 18, 27):
            plain = functional.max_pool2d(plain, 2)
    assert plain.shape == (1, 512, ours.grid(37), ours.grid(37))
    torch.testing.assert_close(ours(picture), plain)
    assert list(bare)[-2] == "34.weight"


@torch.no_grad()
def test_efficientnet_has_a_place_for_32_pixels() -> None:
    net = EfficientNetLite0(weights="").eval()
    for side in (32, 70):
        assert net(torch.randn(1, 3, side, side)).shape == (1, 320, net.grid(side), net.grid(side))
