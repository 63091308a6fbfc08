"""What goes wrong with configuration."""

from __future__ import annotations


class ConfigError(Exception):
    """A configuration cannot be used; the message names the key, the value and the place."""


def invalid(name: str, shown: object, why: str) -> ConfigError:
    """Make the error that says which value of which key is wrong, and why, in Kafka's words."""
    return ConfigError(f"Invalid value {shown} for configuration {name}: {why}")
