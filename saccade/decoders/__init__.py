"""Decoders: what looks at a memory and writes a target."""

from saccade.decoders.base import Decoded, Decoder, Step
from saccade.decoders.bridge import CopyStates, ProjectSummary
from saccade.decoders.cho import ChoDecoder
from saccade.decoders.luong import LuongDecoder
from saccade.decoders.recurrent import RecurrentDecoder
from saccade.decoders.rnnsearch import SearchDecoder
from saccade.decoders.transformer import TransformerDecoder

__all__ = [
    "ChoDecoder",
    "CopyStates",
    "Decoded",
    "Decoder",
    "LuongDecoder",
    "ProjectSummary",
    "RecurrentDecoder",
    "SearchDecoder",
    "Step",
    "TransformerDecoder",
]
