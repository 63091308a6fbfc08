"""Initial contents of a log: found on the disk, or newly created."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from storage.log.log_files import LogFiles
    from storage.log.log_offsets import LogOffsets
    from storage.producer.producer_state import ProducerState


class LogContents(NamedTuple):
    """Handed to the parts of a log, which keep what of it they need."""

    files: LogFiles
    offsets: LogOffsets
    producers: ProducerState
