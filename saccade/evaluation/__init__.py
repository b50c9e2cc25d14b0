"""Evaluation: metrics of predictions, alignments and attention."""

from saccade.evaluation.alignment import (
    AlignmentScores,
    ChosenHead,
    MatchAndMass,
    choose_head,
    match_and_mass,
    score_alignments,
    shift_profile,
    soft_aer,
)
from saccade.evaluation.attention import CoverageProfile, agreement, blur, coverage, mean_blur, soft_agreement
from saccade.evaluation.edits import Edits, count_edits, edit_distance
from saccade.evaluation.figures import Figure
from saccade.evaluation.lengths import LengthBin, by_length
from saccade.evaluation.meanings import CAUTION, MEANINGS, meaning
from saccade.evaluation.tables import Table
from saccade.evaluation.text import (
    ERROR_RATES,
    HIGHER_IS_BETTER,
    METRICS,
    OF_TOKENS,
    bleu,
    character_error_rate,
    chrf,
    edits_table,
    exact_match,
    length_to_failure,
    score_texts,
    ter,
    token_accuracy,
    word_error_rate,
)

__all__ = [
    "CAUTION",
    "ERROR_RATES",
    "HIGHER_IS_BETTER",
    "MEANINGS",
    "METRICS",
    "OF_TOKENS",
    "AlignmentScores",
    "ChosenHead",
    "CoverageProfile",
    "Edits",
    "Figure",
    "LengthBin",
    "MatchAndMass",
    "Table",
    "agreement",
    "bleu",
    "blur",
    "by_length",
    "character_error_rate",
    "choose_head",
    "chrf",
    "count_edits",
    "coverage",
    "edit_distance",
    "edits_table",
    "exact_match",
    "length_to_failure",
    "match_and_mass",
    "mean_blur",
    "meaning",
    "score_alignments",
    "score_texts",
    "shift_profile",
    "soft_aer",
    "soft_agreement",
    "ter",
    "token_accuracy",
    "word_error_rate",
]
