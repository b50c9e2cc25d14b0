"""Layers: the building blocks of encoders and decoders."""

from saccade.layers.cell import RecurrentCell
from saccade.layers.co_attention import CoAttention
from saccade.layers.convolution import ConvolutionBlock
from saccade.layers.embedding import FeatureEmbedding, MaskedEmbedding, TokenEmbedding
from saccade.layers.factorisation_machine import FactorisationMachine
from saccade.layers.gru import GRUCell
from saccade.layers.lstm import LSTMCell
from saccade.layers.lstmn import LSTMNLayer
from saccade.layers.maxout import Maxout
from saccade.layers.moving_baseline import MovingBaseline
from saccade.layers.picked import ReadPicked
from saccade.layers.positions import LearnedPositions, SinusoidalPositions
from saccade.layers.rcnn import RCNNCell
from saccade.layers.recurrent import RecurrentLayer, RecurrentStack
from saccade.layers.sequential import SequentialSelection
from saccade.layers.spectrogram import SpectrogramEmbedding
from saccade.layers.tapes import LSTMNState, Tapes
from saccade.layers.text_convolution import TextConvolution
from saccade.layers.transformer import FeedForward, Residual, TransformerDecoderLayer, TransformerEncoderLayer

__all__ = [
    "CoAttention",
    "ConvolutionBlock",
    "FactorisationMachine",
    "FeatureEmbedding",
    "FeedForward",
    "GRUCell",
    "LSTMCell",
    "LSTMNLayer",
    "LSTMNState",
    "LearnedPositions",
    "MaskedEmbedding",
    "Maxout",
    "MovingBaseline",
    "RCNNCell",
    "ReadPicked",
    "RecurrentCell",
    "RecurrentLayer",
    "RecurrentStack",
    "Residual",
    "SequentialSelection",
    "SinusoidalPositions",
    "SpectrogramEmbedding",
    "Tapes",
    "TextConvolution",
    "TokenEmbedding",
    "TransformerDecoderLayer",
    "TransformerEncoderLayer",
]
