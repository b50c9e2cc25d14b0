"""Runs: folders with everything about one trained model."""

from saccade.runs.cross_validation import CrossValidation, cross_validate
from saccade.runs.run import Evaluation, Run, load
from saccade.runs.training import train

__all__ = ["CrossValidation", "Evaluation", "Run", "cross_validate", "load", "train"]
