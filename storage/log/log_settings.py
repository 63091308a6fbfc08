"""Settings of a log: its partition and place, and the settings shared by all logs of a broker."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from storage.segment import file_names

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from storage.directory.log_directory import LogDirectory

DAY_MS = 86_400_000


def _call_at_once(work: Callable[[], None]) -> None:
    work()


def _draw_zero(_limit: int) -> int:
    return 0


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Settings shared by all logs of a broker, besides their topics' configuration."""

    producer_id_expiration_ms: int = DAY_MS
    run_later: Callable[[Callable[[], None]], None] = _call_at_once
    """Runs work that waits for the disk; on another thread if the broker likes. The work takes no
    argument, returns nothing and raises LogDirectoryError at most."""
    verifies_transactions: bool = False
    """The first batch of a transaction needs a guard (`storage.producer.verification_guards`)."""
    draw_below: Callable[[int], int] = _draw_zero
    """Draws a number from [0, limit), for the jitter of rolls by time."""


@dataclass(slots=True)
class LogPlace:
    """Partition of a log and place of its files. Owned by the log; its parts look here."""

    directory: LogDirectory
    """Replaced once the log is deleted, by one on which all operations fail."""
    topic: str
    partition: int
    topic_id: UUID | None = None
    future_id: str = ""
    """Of a future replica, which will take the place of the present one: the directory's name."""
    path: str = field(init=False)
    """Directory of the partition."""

    def __post_init__(self) -> None:
        name = self.name
        if self.future_id:
            name = file_names.future_directory(self.topic, self.partition, self.future_id)
        self.path = f"{self.directory.path}/{name}"

    @property
    def name(self) -> str:
        """Topic and partition, as the directory of the present replica is named."""
        return file_names.partition_directory(self.topic, self.partition)

    def change(self, directory: LogDirectory, path: str) -> None:
        """The files are elsewhere now."""
        self.directory, self.path, self.future_id = directory, path, ""

    def leave(self) -> LogDirectory:
        """Leave the directory and return it. Later operations raise DeletedLogError."""
        directory = self.directory
        self.directory = directory.as_left_by(self.name)
        return directory
