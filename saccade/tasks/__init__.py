"""Tasks: data, model, loss and figures together."""

from saccade.tasks.base import Encoded, Example, Loss, Prediction, Task, tasks

__all__ = ["Encoded", "Example", "Loss", "Prediction", "Task", "tasks"]
