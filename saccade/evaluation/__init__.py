"""Evaluation: how good predictions are, and for which inputs."""

from saccade.evaluation.edits import edit_distance
from saccade.evaluation.lengths import LengthBin, by_length
from saccade.evaluation.text import (
    HIGHER_IS_BETTER,
    METRICS,
    Figure,
    bleu,
    character_error_rate,
    chrf,
    exact_match,
    score_texts,
    ter,
    token_accuracy,
)

__all__ = [
    "HIGHER_IS_BETTER",
    "METRICS",
    "Figure",
    "LengthBin",
    "bleu",
    "by_length",
    "character_error_rate",
    "chrf",
    "edit_distance",
    "exact_match",
    "score_texts",
    "ter",
    "token_accuracy",
]
