"""Files in memory that can be torn: what a disk may show after the power went."""

from __future__ import annotations


class VolatileFiles:
    """`StoreFiles` in a dictionary, with switches for faults and a record of what was durable."""

    def __init__(self, content: dict[str, bytes] | None = None) -> None:
        self.content: dict[str, bytes] = dict(content or {})
        self.history: list[tuple[str, dict[str, bytes]]] = []
        """After each step: its name, and all files."""
        self.is_full = False
        self.is_closed = False
        self.writes = 0

    def read(self, name: str) -> bytes | None:
        return self.content.get(name)

    def write_at(self, name: str, position: int, data: bytes) -> None:
        old = self.content[name].ljust(position, b"\0")
        if self.is_full:
            self._set(name, old[:position] + data[: len(data) // 2])
            raise OSError(28, "No space left on device")
        self.writes += 1
        self._set(name, old[:position] + data + old[position + len(data) :])

    def replace(self, name: str, data: bytes) -> None:
        if self.is_full:
            raise OSError(28, "No space left on device")
        self._set(name, data)

    def truncate(self, name: str, size: int) -> None:
        self._set(name, self.content[name][:size])

    def close(self) -> None:
        self.is_closed = True

    def _set(self, name: str, data: bytes) -> None:
        self.content[name] = data
        self.history.append((name, dict(self.content)))
