"""What goes wrong with configuration."""

from __future__ import annotations


class ConfigError(Exception):
    """A configuration cannot be used; the message names the key, the value and the place."""
