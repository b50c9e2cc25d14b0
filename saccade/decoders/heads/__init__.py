"""Output heads: from a decoder's features to logits and to a loss."""

from saccade.decoders.heads.adaptive import AdaptiveHead
from saccade.decoders.heads.base import Cues, Entries, Origins, OutputHead, heads
from saccade.decoders.heads.blends import Bias, Blend, Gate, GivenGate, Sentinel, SharedSoftmax
from saccade.decoders.heads.choices import make_head
from saccade.decoders.heads.copying import CopyAttended, CopyScored
from saccade.decoders.heads.copynet import CopyNetHead
from saccade.decoders.heads.lexicon import LexiconHead
from saccade.decoders.heads.linear import LinearHead
from saccade.decoders.heads.low_rank import LowRankHead
from saccade.decoders.heads.mixture import MixtureHead
from saccade.decoders.heads.pointer_generator import PointerGeneratorHead
from saccade.decoders.heads.ways import GENERATE, Said, Way, WaysHead

__all__ = [
    "GENERATE",
    "AdaptiveHead",
    "Bias",
    "Blend",
    "CopyAttended",
    "CopyNetHead",
    "CopyScored",
    "Cues",
    "Entries",
    "Gate",
    "GivenGate",
    "LexiconHead",
    "LinearHead",
    "LowRankHead",
    "MixtureHead",
    "Origins",
    "OutputHead",
    "PointerGeneratorHead",
    "Said",
    "Sentinel",
    "SharedSoftmax",
    "Way",
    "WaysHead",
    "heads",
    "make_head",
]
