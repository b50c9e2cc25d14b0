"""Exports: trained models for programs other than Saccade."""

from saccade.export.base import Format, export, formats
from saccade.export.onnx import Onnx
from saccade.export.page import Page

__all__ = ["Format", "Onnx", "Page", "export", "formats"]
