"""Configuration: YAML, checked against the signatures of the classes that it describes."""

from saccade.configuration.errors import ConfigError
from saccade.configuration.files import override, read_config, shipped, write_config
from saccade.configuration.plan import Plan

__all__ = ["ConfigError", "Plan", "override", "read_config", "shipped", "write_config"]
