"""What goes wrong between a test and its broker."""

from __future__ import annotations


class EmbeddedBrokerError(Exception):
    """A broker could not do what the test asked; the text says why."""


class NotReachedError(EmbeddedBrokerError, AssertionError):
    """What a test waited for did not come about in time; the text says how far it came."""
