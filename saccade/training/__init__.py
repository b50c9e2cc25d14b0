"""Training: the loop, its optimisers and schedules, exact resumption, logging."""

from saccade.training.checkpoints import Checkpoint, Checkpoints
from saccade.training.interruption import Interrupted
from saccade.training.metrics import read_metrics
from saccade.training.optimisers import SGD, Adadelta, Adagrad, Adam, AdamW, Optimiser, RMSprop, optimisers
from saccade.training.position import Result
from saccade.training.randomness import seed_everything
from saccade.training.schedules import Constant, Cosine, InverseSqrt, Linear, Noam, Plateau, Schedule, schedules
from saccade.training.trainer import Trainer

__all__ = [
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Checkpoint",
    "Checkpoints",
    "Constant",
    "Cosine",
    "Interrupted",
    "InverseSqrt",
    "Linear",
    "Noam",
    "Optimiser",
    "Plateau",
    "RMSprop",
    "Result",
    "Schedule",
    "Trainer",
    "optimisers",
    "read_metrics",
    "schedules",
    "seed_everything",
]
