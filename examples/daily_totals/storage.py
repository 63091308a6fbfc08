"""How sales and totals are written in records."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Sale:
    """One sale."""

    day: str
    cents: int

    def to_json(self) -> bytes:
        """As it stands in a record."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, text: bytes) -> Sale:
        """Read a record."""
        return cls(**json.loads(text))
