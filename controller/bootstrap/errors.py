"""What a new cluster is refused with."""

from __future__ import annotations


class BootstrapError(ValueError):
    """No cluster begins like this; the message says why, for the person who asked for it."""
