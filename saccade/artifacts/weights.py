"""The weights of a model: saved, compared with another model, loaded."""

import os
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor, nn

from saccade.artifacts.files import ArtifactError, write_file
from saccade.artifacts.sharded import placed
from saccade.artifacts.tensors import Shapes, compare_shapes, pack_tensors, read_header, read_tensors


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """The parameters and buffers of a model, tied ones once."""
    lasting = model.state_dict().keys()
    buffers = {name: buffer for name, buffer in model.named_buffers() if name in lasting}
    return {**{name: parameter.detach() for name, parameter in model.named_parameters()}, **buffers}


def shapes_of(weights: nn.Module | Mapping[str, Tensor]) -> Shapes:
    """The shape and type of each weight of a model on any device, including the meta device."""
    tensors = weights_of(weights) if isinstance(weights, nn.Module) else weights
    return {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in tensors.items()}


def set_weights(model: nn.Module, weights: Mapping[str, Tensor], where: str = "This set of weights") -> None:
    """Copies weights into a model with the same names, shapes and types; `where` names their origin in errors."""
    compare_shapes(shapes_of(model), shapes_of(weights), where)
    for name, tensor in weights_of(model).items():
        tensor.copy_(placed(weights[name], tensor))


def save_weights(model: nn.Module, path: str | os.PathLike[str]) -> Path:
    """Writes the model's weights as one safetensors file."""
    return write_file(path, pack_tensors(weights_of(model)))


def load_weights(model: nn.Module, path: str | os.PathLike[str]) -> None:
    """Reads what `save_weights` wrote into a model that was built in the same way.

    Files for another model are rejected by their header, and weights with NaN or infinity by name.
    """
    weights = read_tensors(path, shapes_of(model))
    _check_finite(weights, path)
    set_weights(model, weights, str(path))


def load_fitting_weights(model: nn.Module, path: str | os.PathLike[str]) -> list[str]:
    """Reads the weights of another model that match by name, shape and type; returns their names."""
    from safetensors import safe_open

    given, own = read_header(path), weights_of(model)
    fitting = [name for name, about in shapes_of(own).items() if given.get(name) == about]
    with safe_open(path, "pt") as file:  # mapped: what does not fit is never read
        weights = {name: file.get_tensor(name) for name in fitting}
        _check_finite(weights, path)
        for name in fitting:
            own[name].copy_(weights[name])
    return fitting


def _check_finite(weights: Mapping[str, Tensor], path: str | os.PathLike[str]) -> None:
    for name, tensor in weights.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise ArtifactError(f"{path} is damaged: {name} contains NaN or infinite values.")
