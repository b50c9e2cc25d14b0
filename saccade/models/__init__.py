"""Models: one file per paper."""

from saccade.models.base import Costs, EncoderDecoder, LanguageModel, Losses, costs_of, models
from saccade.models.bert import Bert
from saccade.models.cho import Cho
from saccade.models.convolutional_attention import ConvolutionalAttention
from saccade.models.copynet import CopyNet
from saccade.models.deep_conn import DeepCoNN
from saccade.models.dual_attention import DualAttention
from saccade.models.factorisation import Factorisation
from saccade.models.gat import GAT
from saccade.models.gat_graph import GraphGAT
from saccade.models.gat_link import LinkGAT
from saccade.models.han import HAN
from saccade.models.hard_monotonic import HardMonotonic
from saccade.models.kim import Kim
from saccade.models.language_model import TransformerLanguageModel
from saccade.models.las import ListenAttendSpell
from saccade.models.lstm_language_model import LSTMLanguageModel
from saccade.models.lstmn_language_model import LSTMNLanguageModel
from saccade.models.lstmn_pair import LSTMNPair
from saccade.models.luong import Luong
from saccade.models.mpcn import MPCN
from saccade.models.multi_source import MultiSource
from saccade.models.multimodal import Multimodal
from saccade.models.pointer_generator import PointerGenerator
from saccade.models.pointer_sentinel import PointerSentinel
from saccade.models.pooling import AttentionPooling
from saccade.models.rationale import Rationale
from saccade.models.retain import RETAIN
from saccade.models.rnnsearch import RNNSearch
from saccade.models.show_attend_tell import ShowAttendTell
from saccade.models.ssnt import SegmentToSegment
from saccade.models.sutskever import Sutskever
from saccade.models.tagging import Tagger
from saccade.models.transformer import Transformer
from saccade.models.visits import CodeContributions, VisitBag, VisitRNN, VisitTransformer
from saccade.models.word_by_word import WordByWord

create = models.create
names = models.names

__all__ = [
    "GAT",
    "HAN",
    "MPCN",
    "RETAIN",
    "AttentionPooling",
    "Bert",
    "Cho",
    "CodeContributions",
    "ConvolutionalAttention",
    "CopyNet",
    "Costs",
    "DeepCoNN",
    "DualAttention",
    "EncoderDecoder",
    "Factorisation",
    "GraphGAT",
    "HardMonotonic",
    "Kim",
    "LSTMLanguageModel",
    "LSTMNLanguageModel",
    "LSTMNPair",
    "LanguageModel",
    "LinkGAT",
    "ListenAttendSpell",
    "Losses",
    "Luong",
    "MultiSource",
    "Multimodal",
    "PointerGenerator",
    "PointerSentinel",
    "RNNSearch",
    "Rationale",
    "SegmentToSegment",
    "ShowAttendTell",
    "Sutskever",
    "Tagger",
    "Transformer",
    "TransformerLanguageModel",
    "VisitBag",
    "VisitRNN",
    "VisitTransformer",
    "WordByWord",
    "costs_of",
    "create",
    "models",
    "names",
]
