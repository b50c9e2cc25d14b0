"""Runs: folders with everything about one trained model."""

from saccade.runs.run import Evaluation, Run, load
from saccade.runs.training import train

__all__ = ["Evaluation", "Run", "load", "train"]
