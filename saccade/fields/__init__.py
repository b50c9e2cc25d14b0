"""Fields: what one column of the user's data is."""

from saccade.fields.audio import Audio
from saccade.fields.base import Field, Padded, fields
from saccade.fields.evidence import Evidence
from saccade.fields.label import Label, Labels
from saccade.fields.links import Links
from saccade.fields.node import Node
from saccade.fields.number import Number
from saccade.fields.tags import Tags
from saccade.fields.text import Text

__all__ = [
    "Audio",
    "Evidence",
    "Field",
    "Label",
    "Labels",
    "Links",
    "Node",
    "Number",
    "Padded",
    "Tags",
    "Text",
    "fields",
]
