"""Values of producers' records, which name their origin: a misplaced one is recognised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.checks.refusals import report

if TYPE_CHECKING:
    from collections.abc import Callable

SHOWN_BYTES = 60

At = tuple[str, int]
"""A topic and the index of a partition."""
Origin = tuple[str, int]
"""A writer, and the number of one of its values for a partition, from 0 on."""


def value_of(writer: str, at: At, number: int, length: int) -> bytes:
    """A value of about `length` bytes, each of which depends on all that it is."""
    mark = f"{writer}/{at[0]}/{at[1]}/{number}|".encode()
    return (mark * (length // len(mark) + 1))[: max(length, len(mark))]


class Sent:
    """All that was sent, by partition and writer; values are made anew to be compared."""

    def __init__(self) -> None:
        self._lengths: dict[tuple[At, str], list[int]] = {}
        self.size_in_bytes = 0
        """Of all values together."""
        self.listeners: list[Callable[[At], None]] = []
        """Hear of each batch, at the moment it is sent."""

    def new(self, writer: str, at: At, length: int) -> tuple[int, bytes]:
        """The next value of a writer for a partition, and its number."""
        lengths = self._lengths.setdefault((at, writer), [])
        number = len(lengths)
        lengths.append(length)
        value = value_of(writer, at, number, length)
        self.size_in_bytes += len(value)
        return number, value

    def recognise(self, at: At, value: bytes, where: str) -> Origin:
        """Whose a value is that was found; reports one that is not exactly what was sent."""
        mark, _, _ = value.partition(b"|")
        try:
            writer, topic, index, number = mark.decode().rsplit("/", 3)
            found = at == (topic, int(index))
            length = self._lengths[at, writer][int(number)] if found else 0
        except (ValueError, KeyError, IndexError):
            found, length, writer, number = False, 0, "", "-1"
        if not found or value != value_of(writer, at, int(number), length):
            report(
                f"{where}: {at[0]}-{at[1]} has a record that was never sent: {len(value)} bytes, "
                f"{value[:SHOWN_BYTES]!r}"
            )
        return writer, int(number)
