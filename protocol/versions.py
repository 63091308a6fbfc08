"""Version ranges as Kafka's message definitions write them: "3", "0-12", "9+", "none"."""

from __future__ import annotations

from typing import NamedTuple

HIGHEST_VERSION = 32767


class Versions(NamedTuple):
    """An inclusive range; empty when `last < first`."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> Versions:
        """Read "none", "3", "0-12" or "9+"; raises ValueError that quotes the text."""
        if text == "none":
            return NO_VERSIONS
        first, dash, last = text.partition("-")
        if dash:
            return cls(int(first), int(last))
        if text.endswith("+"):
            return cls(int(text[:-1]), HIGHEST_VERSION)
        return cls(int(text), int(text))

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last

    def __str__(self) -> str:
        if self.last < self.first:
            return "none"
        if self.last == HIGHEST_VERSION:
            return f"{self.first}+"
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


ALL_VERSIONS = Versions(0, HIGHEST_VERSION)
NO_VERSIONS = Versions(0, -1)
