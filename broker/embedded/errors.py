"""Errors between a test and its broker."""

from __future__ import annotations


class EmbeddedBrokerError(Exception):
    """A broker could not carry out a request of the test; the text has the reason."""


class NotReachedError(EmbeddedBrokerError, AssertionError):
    """A condition that a test waited for was not met in time; the text states the progress."""
