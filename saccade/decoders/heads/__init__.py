"""Output heads: from a decoder's features to logits and to a loss."""

from saccade.decoders.heads.base import OutputHead
from saccade.decoders.heads.linear import LinearHead
from saccade.decoders.heads.low_rank import LowRankHead
from saccade.decoders.heads.mixture import MixtureHead

__all__ = ["LinearHead", "LowRankHead", "MixtureHead", "OutputHead"]
