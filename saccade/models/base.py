"""What an encoder-decoder is."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from saccade.decoders import Decoded, Decoder, Step
from saccade.encoders import Encoded, Encoder
from saccade.kernels.cross_entropy import CrossEntropy, cross_entropy
from saccade.registry import Registry


class EncoderDecoder(nn.Module):
    """Reads a source into a memory and writes a target with it.

    Shapes:
        source (batch, length), source_mask bool (batch, length), True = real, target_in (batch, steps), the start token
        first -> `Decoded` with features (batch, steps, dim), which `output` makes into logits (batch, steps, vocab).
    """

    def __init__(self, *, encoder: Encoder, decoder: Decoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    def forward(self, source: Tensor, source_mask: Tensor, target_in: Tensor) -> Decoded:
        """Teacher forcing."""
        decoded: Decoded = self.decoder(self.encode(source, source_mask), target_in)
        return decoded

    def encode(self, source: Tensor, source_mask: Tensor) -> Encoded:
        encoded: Encoded = self.encoder(source, source_mask)
        return encoded

    def output(self, features: Tensor) -> Tensor:
        """Logits of features."""
        return self.decoder.output(features)

    def cross_entropy(
        self, features: Tensor, targets: Tensor, *, smoothing: float = 0.0, first: int = 0
    ) -> CrossEntropy:
        """That of the logits of features (n, dim) with targets (n,); see `saccade.kernels.cross_entropy`."""
        if type(self).output is EncoderDecoder.output:
            return self.decoder.cross_entropy(features, targets, smoothing=smoothing, first=first)
        return cross_entropy(self.output(features), targets, smoothing=smoothing, first=first)

    def begin(self, encoded: Encoded) -> Any:
        """The state before the first token."""
        return self.decoder.begin(encoded)

    def step(self, tokens: Tensor, state: Any) -> Step:
        """One step after tokens (batch,)."""
        return self.decoder.step(tokens, state)

    def select(self, state: Any, rows: Tensor) -> Any:
        """The state of the chosen batch rows."""
        return self.decoder.select(state, rows)

    def reorder(self, state: Any, rows: Tensor) -> Any:
        """The state of rows that stay within their own sentence."""
        return self.decoder.reorder(state, rows)


models: Registry[nn.Module] = Registry("model", base=nn.Module, home="saccade.models")
