"""Fields: what one column of the user's data is."""

from saccade.fields.audio import Audio
from saccade.fields.base import Field, Padded, fields
from saccade.fields.boxes import Boxes
from saccade.fields.document import Document
from saccade.fields.evidence import Evidence
from saccade.fields.graph import GraphField
from saccade.fields.graph_files import write_graph
from saccade.fields.identity import Identity
from saccade.fields.image import Image
from saccade.fields.label import Label, Labels
from saccade.fields.link import Link
from saccade.fields.links import Links
from saccade.fields.moment import Moment
from saccade.fields.node import Node
from saccade.fields.number import Number
from saccade.fields.optional import OptionalField, plain
from saccade.fields.reviews import Reviews
from saccade.fields.span import Span
from saccade.fields.tags import Tags
from saccade.fields.text import Text
from saccade.fields.visit_labels import VisitLabel, VisitLabels
from saccade.fields.visits import Visits
from saccade.fields.wordpieces import WordPieces

__all__ = [
    "Audio",
    "Boxes",
    "Document",
    "Evidence",
    "Field",
    "GraphField",
    "Identity",
    "Image",
    "Label",
    "Labels",
    "Link",
    "Links",
    "Moment",
    "Node",
    "Number",
    "OptionalField",
    "Padded",
    "Reviews",
    "Span",
    "Tags",
    "Text",
    "VisitLabel",
    "VisitLabels",
    "Visits",
    "WordPieces",
    "fields",
    "plain",
    "write_graph",
]
