"""Decoders: attend to a memory and generate a target."""

from saccade.decoders.aligned import AlignedDecoder
from saccade.decoders.base import Decoded, Decoder, Step
from saccade.decoders.bridge import CopyStates, LearnedStart, ProjectSummary
from saccade.decoders.cho import ChoDecoder
from saccade.decoders.combination import BasicCombination, ChildSumCombination, Combination
from saccade.decoders.convolutional import ConvolutionalAttentionDecoder
from saccade.decoders.copynet import CopyNetDecoder
from saccade.decoders.ctc import CTC
from saccade.decoders.heads import LinearHead, LowRankHead, MixtureHead, Origins, OutputHead
from saccade.decoders.luong import LuongDecoder
from saccade.decoders.recurrent import RecurrentDecoder
from saccade.decoders.rnnsearch import RNNSearchDecoder
from saccade.decoders.shift import shift_right
from saccade.decoders.show_attend_tell import ShowAttendTellDecoder
from saccade.decoders.source_attentions import SourceAttentions
from saccade.decoders.transformer import TransformerDecoder
from saccade.decoders.transitions import (
    FreeTransitions,
    MonotonicTransitions,
    MoveTransitions,
    ShiftTransitions,
    Transitions,
)

__all__ = [
    "CTC",
    "AlignedDecoder",
    "BasicCombination",
    "ChildSumCombination",
    "ChoDecoder",
    "Combination",
    "ConvolutionalAttentionDecoder",
    "CopyNetDecoder",
    "CopyStates",
    "Decoded",
    "Decoder",
    "FreeTransitions",
    "LearnedStart",
    "LinearHead",
    "LowRankHead",
    "LuongDecoder",
    "MixtureHead",
    "MonotonicTransitions",
    "MoveTransitions",
    "Origins",
    "OutputHead",
    "ProjectSummary",
    "RNNSearchDecoder",
    "RecurrentDecoder",
    "ShiftTransitions",
    "ShowAttendTellDecoder",
    "SourceAttentions",
    "Step",
    "TransformerDecoder",
    "Transitions",
    "shift_right",
]
