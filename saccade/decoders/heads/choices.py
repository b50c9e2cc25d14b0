"""Heads by name, built for the sizes where they are used."""

from __future__ import annotations

from functools import partial
from typing import Any

from saccade.decoders.heads.base import OutputHead, heads
from saccade.layers.choices import make_member


def make_head(head: str | OutputHead | partial[OutputHead], **sizes: Any) -> OutputHead:
    """Builds a head from a name or `partial`, adding those `sizes` that it accepts and lacks; copies an instance."""
    made: OutputHead = make_member(head, heads, OutputHead, sizes)
    return made
