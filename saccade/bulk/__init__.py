"""Bulk prediction: tables larger than memory, block by block, on one machine or many."""

from saccade.bulk.engines import Engine, engines
from saccade.bulk.predicting import Summary, predict_files

__all__ = ["Engine", "Summary", "engines", "predict_files"]
