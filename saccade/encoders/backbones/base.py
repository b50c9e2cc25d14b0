"""The base class of backbones."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from saccade.registry import Registry

Colours = tuple[float, float, float]


class Backbone(nn.Module):
    """A pretrained network that annotates pictures and is not trained further.

    A new backbone sets `output_dim` and `stride` and implements `forward`; its parameters are named as in a published
    state file.

    Shapes:
        pictures (batch, 3, side, side), normalised -> annotations (batch, output_dim, lines, columns).

    Args:
        weights: the state file, .safetensors or .pth; a run keeps a copy of what it needs of it.
    """

    mean: Colours = (0.485, 0.456, 0.406)
    deviation: Colours = (0.229, 0.224, 0.225)
    """The mean and deviation of red, green and blue that the network was trained with."""

    output_dim: int
    """Features of an annotation."""

    stride: int
    """Pixels from one annotation to the next."""

    def __init__(self, *, weights: str) -> None:
        super().__init__()
        self.weights = weights

    def renamed(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """A published state dict under this module's names; entries it does not need may stay."""
        return dict(state)

    def grid(self, side: int) -> int:
        """The lines of annotations, and the columns, of a picture with this side in pixels."""
        return -(-side // self.stride)


backbones: Registry[Backbone] = Registry("backbone", base=Backbone, home="saccade.encoders.backbones")
