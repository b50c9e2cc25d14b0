"""Generation: writing a text for each input."""

from saccade.tasks.generation.options import SearchOptions
from saccade.tasks.generation.task import Generation

__all__ = ["Generation", "SearchOptions"]
