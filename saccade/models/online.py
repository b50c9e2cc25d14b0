"""Decoding while reading: an online model that gets its source in parts."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from saccade.decoders import RNNSearchDecoder
from saccade.encoders import EncoderOutput, RecurrentEncoder
from saccade.layers import RecurrentLayer
from saccade.layers.cell import CellState
from saccade.models.base import EncoderDecoder


class WrittenToken(NamedTuple):
    """A token, and the attention weights it was written with.

    Args:
        token: the end token is the last.
        log_prob: its log-probability.
        weights: (positions,), over those that had been read.
    """

    token: int
    log_prob: float
    weights: Tensor


def is_online(model: nn.Module) -> bool:
    """Whether a model can write before it has read its whole source."""
    if not isinstance(model, EncoderDecoder) or not isinstance(model.encoder, RecurrentEncoder):
        return False
    decoder, encoder = model.decoder, model.encoder
    forwards = all(cast(RecurrentLayer, layer).directions == 1 for layer in encoder.layers) and not encoder.reversed
    if not forwards or not isinstance(decoder, RNNSearchDecoder):
        return False
    return decoder.attention.selection.online and not decoder.attention.score.stateful


class OnlineReader:
    """Greedy search over a source that arrives in parts: it writes the same tokens as for the whole source.

    A monotonic selection stops at a position, and what it writes there does not depend on later ones. If it does not
    stop at any position read so far, it waits for more.

    Args:
        model: for which `is_online`.
        bos, eos, pad: the special ids.
    """

    def __init__(self, model: EncoderDecoder, *, bos: int = 1, eos: int = 2, pad: int = 0) -> None:
        if not is_online(model):
            raise ValueError(f"{type(model).__name__} reads all of its source first: build it with online=True.")
        assert isinstance(model.encoder, RecurrentEncoder)
        self.model, self.encoder = model, model.encoder
        self.eos, self.never = eos, [bos, pad]
        self.stride = model.encoder.stride
        self._frames = torch.zeros(0)
        self._layers: list[CellState | None] = [None] * len(self.encoder.layers)
        self._states: Tensor | None = None
        self._state: Any = None
        self._token = bos
        self.written: list[WrittenToken] = []
        self.ended = False

    @property
    def positions(self) -> int:
        """How many positions have been read."""
        return 0 if self._states is None else self._states.shape[1]

    @torch.no_grad()
    def push(self, frames: Tensor, *, last: bool = False, most: int | None = None) -> list[WrittenToken]:
        """Reads more frames (n, dim) of the source, and returns the tokens that can now be written.

        Args:
            frames: the next ones.
            last: whether the source ends here.
            most: the maximum number of tokens in total, not counting the end; others are written after later frames.
        """
        self._read(frames, last)
        before = len(self.written)
        while not self.ended and self._states is not None:
            found = self.model.step(torch.tensor([self._token]), self._state)
            weights = found.weights
            assert weights is not None, "online attention has weights"
            if not last and not bool(weights.any()):
                break  # it has not found where to stop
            log_probs = found.log_probs()[0]
            log_probs[self.never] = -torch.inf
            token = int(log_probs.argmax())
            if most is not None and len(self.written) >= most and token != self.eos:
                self.ended = last
                break
            self._token, self._state = token, found.state
            self.ended = self._token == self.eos
            self.written.append(WrittenToken(self._token, float(log_probs[self._token]), weights[0]))
        return self.written[before:]

    def _read(self, frames: Tensor, last: bool) -> None:
        """Encodes the frames that fill positions, and adds them to the memory."""
        self._frames = torch.cat([self._frames, frames]) if self._frames.numel() else frames
        count = len(self._frames) if last else len(self._frames) // self.stride * self.stride
        if count:
            now, self._frames = self._frames[None, :count], self._frames[count:]
            states, _ = self.encoder.embed(now, torch.ones(1, count, dtype=torch.bool))
            for number, layer in enumerate(self.encoder.layers):
                found = cast(RecurrentLayer, layer).run(states, self._layers[number])
                states, self._layers[number] = found[0], tuple(part[:, -1] for part in found)
            self._states = states if self._states is None else torch.cat([self._states, states], dim=1)
        if self._states is None:
            return
        real = torch.ones(self._states.shape[:2], dtype=torch.bool)
        fresh = self.model.begin(EncoderOutput(self._states, real, self._states[:, -1]))
        self._state = fresh if self._state is None else self._state._replace(memory=fresh.memory)
