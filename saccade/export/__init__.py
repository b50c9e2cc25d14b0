"""Exports: trained models for programs other than Saccade."""

from saccade.export.base import Format, export, formats
from saccade.export.onnx import Onnx

__all__ = ["Format", "Onnx", "export", "formats"]
