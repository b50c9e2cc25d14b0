"""Encoders: turn inputs into states to attend to."""

from saccade.encoders.attended import AttendedEncoder
from saccade.encoders.base import Encoder, EncoderOutput, SourceWords, encoders
from saccade.encoders.convolutional import ConvolutionalEncoder
from saccade.encoders.embedding import EmbeddingEncoder
from saccade.encoders.grid import GridEncoder
from saccade.encoders.lstmn import LSTMNEncoder
from saccade.encoders.patches import GivenEncoder, PatchEncoder, ProjectedEncoder
from saccade.encoders.pooled import PooledEncoder
from saccade.encoders.pyramidal import PyramidalEncoder
from saccade.encoders.recurrent import RecurrentEncoder
from saccade.encoders.residual import ResidualEncoder
from saccade.encoders.several import EncodedSources, JoinedSources, Layout, SeveralEncoders
from saccade.encoders.transformer import TransformerEncoder
from saccade.encoders.vectors import WithVectorsEncoder

__all__ = [
    "AttendedEncoder",
    "ConvolutionalEncoder",
    "EmbeddingEncoder",
    "EncodedSources",
    "Encoder",
    "EncoderOutput",
    "GivenEncoder",
    "GridEncoder",
    "JoinedSources",
    "LSTMNEncoder",
    "Layout",
    "PatchEncoder",
    "PooledEncoder",
    "ProjectedEncoder",
    "PyramidalEncoder",
    "RecurrentEncoder",
    "ResidualEncoder",
    "SeveralEncoders",
    "SourceWords",
    "TransformerEncoder",
    "WithVectorsEncoder",
    "encoders",
]
