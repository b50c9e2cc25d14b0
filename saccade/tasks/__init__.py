"""Tasks: what is learned from the data."""

from saccade.tasks.answers import Answer, Attended, GeneratedText
from saccade.tasks.base import Example, Loss, Row, Task, tasks
from saccade.tasks.classification import Classification
from saccade.tasks.generation import Generation
from saccade.tasks.language_modelling import LanguageModelling
from saccade.tasks.link_prediction import LinkPrediction
from saccade.tasks.options import Options
from saccade.tasks.pretraining import Pretraining
from saccade.tasks.rating import Rating
from saccade.tasks.recommendation import Recommendation
from saccade.tasks.spans import Spans

__all__ = [
    "Answer",
    "Attended",
    "Classification",
    "Example",
    "GeneratedText",
    "Generation",
    "LanguageModelling",
    "LinkPrediction",
    "Loss",
    "Options",
    "Pretraining",
    "Rating",
    "Recommendation",
    "Row",
    "Spans",
    "Task",
    "tasks",
]
