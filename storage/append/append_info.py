"""What an append did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

NO_TIMESTAMP: Final = -1


@dataclass(slots=True)
class AppendInfo:
    """What an append did, as the answer to the producer needs it."""

    first_offset: int
    last_offset: int
    """Of the last record: the log goes on with the next one."""
    max_timestamp: int
    log_append_time_ms: int
    """-1 when the records keep the producer's timestamps."""
    log_start_offset: int
    is_duplicate: bool = False
    """The batch had been appended before; the offsets are those of the first time."""
