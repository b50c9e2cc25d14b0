"""Encoders: turn inputs into states to attend to."""

from saccade.encoders.attended import AttendedEncoder
from saccade.encoders.base import Encoder, EncoderOutput
from saccade.encoders.convolutional import ConvolutionalEncoder
from saccade.encoders.embedding import EmbeddingEncoder
from saccade.encoders.lstmn import LSTMNEncoder
from saccade.encoders.pooled import PooledEncoder
from saccade.encoders.recurrent import RecurrentEncoder
from saccade.encoders.transformer import TransformerEncoder

__all__ = [
    "AttendedEncoder",
    "ConvolutionalEncoder",
    "EmbeddingEncoder",
    "Encoder",
    "EncoderOutput",
    "LSTMNEncoder",
    "PooledEncoder",
    "RecurrentEncoder",
    "TransformerEncoder",
]
