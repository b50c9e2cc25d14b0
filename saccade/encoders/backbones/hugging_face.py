"""Networks from the transformers library."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from saccade.encoders.backbones.base import Backbone, backbones
from saccade.registry import nearest

Architecture = Literal["convnext", "convnextv2", "deit", "dinov2", "mobilenet_v2", "regnet", "resnet", "swin", "vit"]

USUAL_SIDE = 224
MOST_WEIGHTS = 10**9


@backbones.register("transformers")
class TransformersBackbone(Backbone):
    """A convolutional network or Vision Transformer from the `transformers` library, which must be installed.

    Annotations are the network's last states, one for each place; tokens that belong to no place are left out. The
    state file is `model.safetensors` or `pytorch_model.bin` of a saved model, with or without a classifier.

    Shapes:
        pictures (batch, 3, side, side) -> (batch, output_dim, lines, columns).

    Args:
        weights: the state file, .safetensors or .pth.
        architecture: the `model_type` of the file `config.json` beside it.
        options: the other settings of that file that are not the library's defaults, such as `{hidden_size: 192}`. A
            Vision Transformer reads pictures of `image_size` pixels only.
    """

    def __init__(self, *, weights: str, architecture: Architecture, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(weights=weights)
        if architecture not in get_args(Architecture):
            raise ValueError(f"Unknown architecture {architecture!r}.{nearest(architecture, get_args(Architecture))}")
        try:
            library = importlib.import_module("transformers")
        except ImportError:
            raise ImportError("The backbone 'transformers' needs that library: pip install transformers") from None
        configs, networks = library.AutoConfig, library.AutoModel
        usual = configs.for_model(architecture).to_dict()
        for name in options or {}:
            if name not in usual:
                raise ValueError(f"options: {architecture} has no setting {name!r}.{nearest(name, usual)}")
        config = configs.for_model(architecture, **(options or {}))
        with torch.device("meta"):
            count = sum(weight.numel() for weight in networks.from_config(config).parameters())
        if count > MOST_WEIGHTS:
            raise ValueError(f"options describe a network of {count:,} weights; a backbone has up to {MOST_WEIGHTS:,}.")
        self.network = networks.from_config(config)
        if any(name.startswith("pooler.") for name in self.network.state_dict()):
            self.network.pooler = None  # it summarises all places, and some files do not have it
        self._sides: dict[int, int] = {}
        side = getattr(config, "image_size", USUAL_SIDE)
        self.stride = side // self.grid(side)

    def forward(self, pictures: Tensor) -> Tensor:
        states: Tensor = self.network(pictures).last_hidden_state
        if states.dim() == 4:
            return states
        side = math.isqrt(states.shape[1])
        places: Tensor = states[:, -(side**2) :].mT
        return places.reshape(*places.shape[:2], side, side)

    def renamed(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Renamed by the library, whose own names differ from those in files; missing weights are left out."""
        logging = importlib.import_module("transformers.utils.logging")
        before = logging.get_verbosity()
        logging.set_verbosity_error()  # it would report the classifier
        try:
            filled, about = type(self.network).from_pretrained(
                None,
                config=self.network.config,
                state_dict=dict(state),
                output_loading_info=True,
                local_files_only=True,
            )
        finally:
            logging.set_verbosity(before)
        given = {name: each for name, each in filled.state_dict().items() if name not in about["missing_keys"]}
        return {f"network.{name}": each for name, each in given.items()}

    def grid(self, side: int) -> int:
        """As `Backbone.grid`; found by a blank picture."""
        if side not in self._sides:
            with torch.no_grad():
                shape = self(torch.zeros(1, 3, side, side)).shape
            self.output_dim, self._sides[side] = shape[1], shape[2]
        return self._sides[side]
