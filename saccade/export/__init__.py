"""Exports: trained models for programs other than Saccade."""

from saccade.export.base import Format, export, formats
from saccade.export.ctranslate2 import CTranslate2
from saccade.export.huggingface import HuggingFace
from saccade.export.int8 import Int8
from saccade.export.onnx import Onnx
from saccade.export.page import Page
from saccade.export.torch_program import TorchProgram

__all__ = [
    "CTranslate2",
    "Format",
    "HuggingFace",
    "Int8",
    "Onnx",
    "Page",
    "TorchProgram",
    "export",
    "formats",
]
