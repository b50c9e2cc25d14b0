"""Engines: where the blocks of a bulk prediction are worked on."""

from saccade.bulk.engines.base import Engine, engines
from saccade.bulk.engines.embedded import Embedded
from saccade.bulk.engines.ray import Ray

__all__ = ["Embedded", "Engine", "Ray", "engines"]
