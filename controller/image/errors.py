"""Errors of the metadata image."""

from __future__ import annotations


class ReplayError(ValueError):
    """A record refers to what is not there, or contradicts it. It changed nothing."""


class UnwritableMetadataError(ValueError):
    """An image holds what the records of its `metadata.version` cannot."""
