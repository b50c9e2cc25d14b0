"""VGG-19."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from saccade.encoders.backbones.base import Backbone, backbones

STAGES = ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4))
"""Channels and convolutions of each; pictures are halved between them."""


@backbones.register("vgg19")
class VGG19(Backbone):
    """The convolutions of VGG-19 up to the last, the encoder of Xu et al. (2015).

    A picture of 224 x 224 pixels has 14 x 14 annotations of 512 features. The state file is torchvision's
    (`features.0.weight`), or contains only the convolutions (`0.weight`).

    Shapes:
        pictures (batch, 3, side, side) -> (batch, 512, lines, columns), lines = side / 16.

    Reference:
        Simonyan & Zisserman (2015), arXiv:1409.1556.

    Args:
        weights: the state file, .safetensors or .pth.
    """

    output_dim = 512
    stride = 16

    def __init__(self, *, weights: str) -> None:
        super().__init__(weights=weights)
        layers: list[nn.Module] = []
        before = 3
        for stage, (channels, count) in enumerate(STAGES):
            if stage:
                layers.append(nn.MaxPool2d(2))
            for _ in range(count):
                layers += [nn.Conv2d(before, channels, 3, padding=1), nn.ReLU()]
                before = channels
        self.features = nn.Sequential(*layers)

    def forward(self, pictures: Tensor) -> Tensor:
        annotations: Tensor = self.features(pictures)
        return annotations

    def renamed(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {name if name.startswith("features.") else f"features.{name}": each for name, each in state.items()}

    def grid(self, side: int) -> int:
        return side // self.stride
