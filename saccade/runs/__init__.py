"""Runs: folders with everything about one trained model."""

from saccade.runs.cross_validation import CrossValidation, cross_validate
from saccade.runs.evaluating import Evaluation
from saccade.runs.loading import load
from saccade.runs.run import Run
from saccade.runs.training import train

__all__ = ["CrossValidation", "Evaluation", "Run", "cross_validate", "load", "train"]
