"""Losses on the attention itself, to be added to the task loss with a weight of your choice."""

from saccade.losses.agreement import agreement_bonus
from saccade.losses.alignment import hard_alignment_loss, segment_to_segment_loss, stepwise_alignment_loss
from saccade.losses.coverage import coverage_loss
from saccade.losses.doubly_stochastic import doubly_stochastic_loss
from saccade.losses.entropy import entropy_bonus
from saccade.losses.fertility import GlobalFertility
from saccade.losses.pointer_generator import pointer_generator_log_likelihood, pointer_generator_log_probs
from saccade.losses.reinforce import reinforce_loss
from saccade.losses.supervised import supervised_attention_loss

__all__ = [
    "GlobalFertility",
    "agreement_bonus",
    "coverage_loss",
    "doubly_stochastic_loss",
    "entropy_bonus",
    "hard_alignment_loss",
    "pointer_generator_log_likelihood",
    "pointer_generator_log_probs",
    "reinforce_loss",
    "segment_to_segment_loss",
    "stepwise_alignment_loss",
    "supervised_attention_loss",
]
