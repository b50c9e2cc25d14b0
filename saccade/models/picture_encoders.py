"""Encoders of pictures and of other feature vectors, by name."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Literal, get_args

from saccade.encoders import Encoder, GivenEncoder, GridEncoder, encoders
from saccade.registry import constructor_parameters, nearest

PictureEncoderName = Literal["residual", "patches", "projected", "given"]
PICTURE_ENCODERS: tuple[str, ...] = get_args(PictureEncoderName)


def make_picture_encoder(
    encoder: PictureEncoderName | Encoder | partial[Any], *, features: int | None, dim: int, dropout: float = 0.0
) -> Encoder:
    """The encoder of this name for pictures. A `partial` of any encoder of feature vectors gets the sizes it lacks; any
    other encoder is returned unchanged.

    Args:
        encoder: "residual" or "patches", for the patches of pictures; "projected", for other vectors; "given", for
            vectors that are read as they are.
        features: of a vector of the source.
        dim: features of the annotations, unless they are given.
        dropout: of "patches" and "projected".
    """
    if isinstance(encoder, Encoder):
        return encoder
    if features is None:
        name = encoder if isinstance(encoder, str) else getattr(encoder.func, "__name__", encoder.func)
        raise ValueError(f"encoder={name!r} reads feature vectors: the source must be the field image or audio.")
    if isinstance(encoder, str):
        if encoder not in PICTURE_ENCODERS:
            raise ValueError(f"Unknown encoder {encoder!r}.{nearest(encoder, PICTURE_ENCODERS)}")
        kind = encoders.get(encoder)
        encoder = partial(kind, dropout=dropout) if "dropout" in constructor_parameters(kind) else partial(kind)
    given = encoder.func is GivenEncoder
    side = math.isqrt(features // 3)
    grid = isinstance(encoder.func, type) and issubclass(encoder.func, GridEncoder)
    if grid and features != 3 * side**2:
        name = getattr(encoder.func, "__name__", encoder.func)
        raise ValueError(f"{name} reads patches of 3 colours, got vectors of {features} numbers.")
    sizes = {"patch": side, "dim": features if given else dim, "input_dim": features, "hidden_dim": dim}
    known = constructor_parameters(encoder.func)  # type: ignore[arg-type]
    made = encoder.func(**{name: size for name, size in sizes.items() if name in known} | encoder.keywords)
    if not isinstance(made, Encoder):
        raise TypeError(f"encoder must be an Encoder, got {type(made).__name__}.")
    return made
