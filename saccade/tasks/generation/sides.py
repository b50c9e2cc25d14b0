"""What the parts of a generation task know of it, and of its model."""

from __future__ import annotations

from typing import cast

from torch import nn

from saccade.fields import Field, Text
from saccade.models import EncoderDecoder
from saccade.tasks.base import Task


class SourceToTarget(Task):
    """A task that writes a text, the target, for each source."""

    source: Field
    target: Text
    alignment_shift: int
    """0 if the attention is read at the step that writes a word, 1 at the next step."""


def writer(model: nn.Module) -> EncoderDecoder:
    """The model of such a task, which may be any module with the methods of an `EncoderDecoder`."""
    return cast(EncoderDecoder, model)
