"""Models: one file per paper."""

from saccade.models.base import Costs, EncoderDecoder, Losses, costs_of, models
from saccade.models.cho import Cho
from saccade.models.gat import GAT
from saccade.models.hard_monotonic import HardMonotonic
from saccade.models.kim import Kim
from saccade.models.language_model import TransformerLanguageModel
from saccade.models.luong import Luong
from saccade.models.pooling import AttentionPooling
from saccade.models.rationale import Rationale
from saccade.models.rnnsearch import RNNSearch
from saccade.models.ssnt import SegmentToSegment
from saccade.models.sutskever import Sutskever
from saccade.models.tagging import Tagger
from saccade.models.transformer import Transformer

create = models.create
names = models.names

__all__ = [
    "GAT",
    "AttentionPooling",
    "Cho",
    "Costs",
    "EncoderDecoder",
    "HardMonotonic",
    "Kim",
    "Losses",
    "Luong",
    "RNNSearch",
    "Rationale",
    "SegmentToSegment",
    "Sutskever",
    "Tagger",
    "Transformer",
    "TransformerLanguageModel",
    "costs_of",
    "create",
    "models",
    "names",
]
