"""Exports: trained models for programs other than Saccade."""

from saccade.export.base import Format, export, formats
from saccade.export.onnx import Onnx
from saccade.export.page import Page
from saccade.export.torch_program import TorchProgram

__all__ = ["Format", "Onnx", "Page", "TorchProgram", "export", "formats"]
