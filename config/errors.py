"""Errors in a configuration."""

from __future__ import annotations


class ConfigError(Exception):
    """A configuration cannot be used; the message names the key, the value and the place."""

    def __init__(self, message: str, *keys: str) -> None:
        super().__init__(message)
        self.keys = keys
        """Names of the keys it is about, as far as the error is about keys at all."""


def invalid(name: str, shown: object, why: str) -> ConfigError:
    """Make the error for an invalid value of a key, in Kafka's words."""
    text = str(shown) or "''"
    return ConfigError(f"Invalid value {text} for configuration {name}: {why}", name)
