"""The base class of encoder-decoders that read several sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor

from saccade.decoders import Decoded
from saccade.encoders import EncodedSources, EncoderOutput
from saccade.models.base import EncoderDecoder

Sizes = Mapping[str, int]
"""What an input is: `{"vocab": size}` for tokens, `{"dim": size}` for feature vectors."""


class SeveralSources(EncoderDecoder):
    """An encoder-decoder with any number of sources; a row may lack some of them.

    What it encodes has a `layout`, which says whose position each key of the attention is.

    Shapes:
        source, source_mask bool (batch, length), target_in (batch, steps), and values and mask of each further source
        -> `Decoded`. A row lacks a source if its mask is all False.
    """

    def forward(self, source: Tensor, source_mask: Tensor, target_in: Tensor, *others: Tensor) -> Decoded:
        """Runs the model with teacher forcing."""
        decoded: Decoded = self.decoder(self.encode(source, source_mask, *others), target_in)
        return decoded

    def encode(self, source: Tensor, source_mask: Tensor, *others: Tensor) -> EncoderOutput | EncodedSources:  # type: ignore[override]
        encoded: EncoderOutput | EncodedSources = self.encoder(source, source_mask, *others)
        return encoded


def all_sizes(source_vocab: int | None, source_dim: int | None, other_sources: Sequence[Sizes]) -> list[dict[str, int]]:
    """The sizes of all sources: for each either `vocab` or `dim`."""
    main = {"vocab": source_vocab, "dim": source_dim}
    found = [{name: size for name, size in each.items() if size is not None} for each in (main, *other_sources)]
    for number, sizes in enumerate(found):
        if len(sizes) != 1 or not sizes.keys() <= main.keys():
            name = "source_vocab or source_dim" if not number else f"other_sources[{number - 1}] with vocab or dim"
            raise ValueError(f"Give exactly one size of each source: {name}, got {sizes}.")
    return found
