"""Error of a key store or trust store."""

from __future__ import annotations


class StoreFormatError(Exception):
    """A store cannot be used; the text says why and holds nothing secret."""
