"""The explorer: a page that shows what a model attends to."""

from saccade.interpretation.explorer.axes import Axis, ImageAxis, NodeAxis, TextAxis
from saccade.interpretation.explorer.items import Item, Map, Measure, Outcome
from saccade.interpretation.explorer.page import write_page
from saccade.interpretation.explorer.rendering import FORMATS, passages, render
from saccade.interpretation.explorer.sound import SoundAxis
from saccade.interpretation.explorer.top import TopWeights
from saccade.interpretation.explorer.visits import Contributions, VisitAxis

__all__ = [
    "FORMATS",
    "Axis",
    "Contributions",
    "ImageAxis",
    "Item",
    "Map",
    "Measure",
    "NodeAxis",
    "Outcome",
    "SoundAxis",
    "TextAxis",
    "TopWeights",
    "VisitAxis",
    "passages",
    "render",
    "write_page",
]
