"""What can be wrong with a configuration."""


class ConfigError(ValueError):
    """A configuration that cannot be used; the message names the key and what would be right."""
