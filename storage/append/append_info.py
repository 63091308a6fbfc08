"""Result of an append."""

from __future__ import annotations

from typing import Final

NO_TIMESTAMP: Final = -1


class AppendInfo:
    """Result of an append, with the fields that a Produce response needs.

    Not a dataclass: one is created for each batch, and a compiled dataclass takes three times as
    long to create as in plain Python, an ordinary class a fraction of that.
    """

    __slots__ = (
        "first_offset",
        "is_duplicate",
        "last_offset",
        "log_append_time_ms",
        "log_start_offset",
        "max_timestamp",
    )

    def __init__(
        self,
        first_offset: int,
        last_offset: int,
        max_timestamp: int,
        log_append_time_ms: int,
        log_start_offset: int,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        """Of the last record: the log goes on with the next one."""
        self.max_timestamp = max_timestamp
        self.log_append_time_ms = log_append_time_ms
        """-1 when the records keep the producer's timestamps."""
        self.log_start_offset = log_start_offset
        self.is_duplicate = False
        """The batch had been appended before; the offsets are those of the first time."""
