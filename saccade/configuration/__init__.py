"""Configuration: plain data, checked against the constructors of the classes that it describes."""

from saccade.configuration.errors import ConfigError
from saccade.configuration.files import override, read_config, shipped, write_config

__all__ = ["ConfigError", "override", "read_config", "shipped", "write_config"]
