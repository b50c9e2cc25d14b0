"""Tasks: data, model, loss and figures together."""

from saccade.tasks.base import Encoded, Example, Loss, Prediction, Task, tasks
from saccade.tasks.transduction import Transduction

__all__ = ["Encoded", "Example", "Loss", "Prediction", "Task", "Transduction", "tasks"]
