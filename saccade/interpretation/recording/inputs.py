"""A model's inputs and outputs, in the forms that users have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from saccade.interpretation.recording.pictures import Pictures, is_pictures
from saccade.interpretation.recording.sounds import Sounds, is_sound

PIXELS = ("pixel_values",)
SOUNDS = ("input_features", "input_values")
KINDS = "a tokeniser's or processor's output, token ids, a PIL image, pixels, or a waveform"


class Inputs:
    """What a model was given.

    Args:
        given: a tokeniser's or processor's output, token numbers (batch, tokens), a PIL image, pixels (batch, channels,
            lines, columns), or the samples of a recording.
        rate: samples a second, of a recording.

    Attributes:
        ids: the token numbers (batch, tokens).
        mask: True where they are not padding.
        target: the token numbers that a decoder was given.
        encoding: the output of a fast tokeniser.
    """

    def __init__(self, given: Any, rate: int) -> None:
        self.ids: Tensor | None = None
        self.mask: Tensor | None = None
        self.target: Tensor | None = None
        self.encoding: Any = None
        self.pictures: Pictures | None = None
        self.sounds: Sounds | None = None
        if given is None:
            return
        if isinstance(given, np.ndarray) and given.dtype.kind in "iu" and given.ndim <= 2:
            given = torch.as_tensor(given)
        samples = isinstance(given, Tensor) and given.dtype == torch.int16 and given.dim() == 1
        if samples:  # as sound files hold them
            given = given.float() / 2**15
        if isinstance(given, Mapping):
            self._read_mapping(given, rate)
        elif isinstance(given, Tensor) and not given.is_floating_point() and given.dim() <= 2:
            self.ids = given.reshape(-1, given.shape[-1])
        elif is_pictures(given):
            self.pictures = Pictures(given)
        elif is_sound(given):
            self.sounds = Sounds(given, rate)
        elif _is_rows(given):
            self.ids = torch.tensor([given] if isinstance(given[0], int) else given)
        else:
            shape = f" of shape {tuple(given.shape)}" if isinstance(given, Tensor) else ""
            hint = ': pass tokenizer(text, return_tensors="pt")' if isinstance(given, str) else ""
            raise TypeError(f"inputs must be {KINDS}, got {type(given).__name__}{shape}{hint}.")

    def _read_mapping(self, given: Mapping[str, Any], rate: int) -> None:
        self.ids, self.target = (_tokens(given, name) for name in ("input_ids", "decoder_input_ids"))
        mask = _tokens(given, "attention_mask")
        if self.ids is not None and mask is not None and mask.shape == self.ids.shape:
            self.mask = mask.bool()
        if self.ids is not None and getattr(given, "is_fast", False):
            self.encoding = given
        for name in PIXELS:
            if name in given:
                self.pictures = Pictures(torch.as_tensor(given[name]))
        for name in SOUNDS:
            if name in given:
                self.sounds = Sounds(given[name], rate)
        if len(self) == 0:
            names = ", ".join(map(str, given)) or "nothing"
            raise ValueError(f"inputs must contain input_ids, {', '.join(PIXELS + SOUNDS)}; it contains {names}.")

    def __len__(self) -> int:
        """How many rows the batch has; 0 if nothing was given."""
        return next((len(each) for each in (self.ids, self.pictures, self.sounds) if each is not None), 0)


class Generated:
    """The result of Hugging Face's `generate`.

    Args:
        given: its whole result: a tensor (sequences, tokens), or what it returns with `return_dict_in_generate=True`.

    Attributes:
        ids: the token numbers (sequences, tokens).
        beams: (sequences, steps): the batch row of each hypothesis of a beam search at each step.
        sure: whether the result says if there was a beam search, as a tensor does not.
    """

    def __init__(self, given: Any) -> None:
        ids = given if isinstance(given, Tensor) else _get(given, "sequences")
        if not isinstance(ids, Tensor) or ids.dim() != 2 or ids.is_floating_point():
            shape = f" of shape {tuple(ids.shape)}" if isinstance(ids, Tensor) else ""
            raise TypeError(
                "generated must be what generate returned, token numbers (sequences, tokens) or an output with "
                f".sequences, got {type(given).__name__}{shape}."
            )
        self.ids = ids.detach().cpu()
        beams = None if isinstance(given, Tensor) else _get(given, "beam_indices")
        self.beams = None if beams is None else beams.detach().cpu()
        self.sure = not isinstance(given, Tensor)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def longest(self) -> int:
        """The maximum number of tokens that a beam search wrote."""
        return 0 if self.beams is None else int((self.beams >= 0).sum(1).max())

    def steps(self, row: int) -> int | None:
        """How many tokens a beam search wrote for this row; None if unknown."""
        return None if self.beams is None else int((self.beams[row] >= 0).sum())


def _get(given: Any, name: str) -> Any:
    return given.get(name) if isinstance(given, Mapping) else getattr(given, name, None)


def _tokens(given: Mapping[str, Any], name: str) -> Tensor | None:
    if given.get(name) is None:
        return None
    try:
        found = torch.as_tensor(given[name])
    except (ValueError, TypeError):
        raise ValueError(f"inputs[{name!r}] has rows of different lengths: tokenise with padding=True.") from None
    return found.detach().cpu().reshape(-1, found.shape[-1])


def _is_rows(given: Any) -> bool:
    """Whether this is a list of token numbers, or a list of such lists."""
    if not isinstance(given, list | tuple) or not given:
        return False
    rows = [given] if isinstance(given[0], int) else given
    return all(
        isinstance(row, list | tuple) and len(row) == len(rows[0]) and all(isinstance(each, int) for each in row)
        for row in rows
    )
