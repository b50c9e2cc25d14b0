"""The explorer: a page that shows what a model attended to."""

from saccade.interpretation.explorer.axes import Axis, ImageAxis, TextAxis
from saccade.interpretation.explorer.items import Item, Map, Measure
from saccade.interpretation.explorer.page import write_page
from saccade.interpretation.explorer.rendering import FORMATS, render

__all__ = ["FORMATS", "Axis", "ImageAxis", "Item", "Map", "Measure", "TextAxis", "render", "write_page"]
