"""Reading the values of a topic: the registry, and the reader's schema."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit


class NotAvroError(ValueError):
    """A schema is of another type, or none that can be read; the message says which."""


@dataclass(frozen=True, slots=True)
class Registry:
    """The address of a registry, and the credentials for it."""

    url: str
    """`http://host:8081`; may hold `user:password@`"""

    settings: tuple[tuple[str, str], ...] = ()
    """Settings of Confluent's client: `ssl.ca.location` and the like."""

    def shown(self) -> str:
        """Return the address without its password."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


@dataclass(frozen=True, slots=True)
class AvroValues:
    """The way to read the values of a topic."""

    registry: Registry
    reader: str
    """The reader's schema: JSON of what fastavro made of it."""

    max_bytes: int
    """Longer values are not decoded."""
