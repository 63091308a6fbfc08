"""Refusals of a new cluster."""

from __future__ import annotations


class BootstrapError(ValueError):
    """No cluster begins like this; the message gives the operator the reason."""
