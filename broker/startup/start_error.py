"""Error that prevents a broker's start."""

from __future__ import annotations


class StartError(Exception):
    """The broker cannot start; the text says why, in one line."""
