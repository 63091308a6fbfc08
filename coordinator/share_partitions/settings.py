"""Settings of one share group, as the leader of a partition needs them."""

from __future__ import annotations

import dataclasses
import enum
from typing import Final, NamedTuple

from config.groups.offset_reset import EARLIEST, duration_ms


class ResetKind(enum.Enum):
    """Reset of the start offset of a share group in a partition that it has not consumed."""

    LATEST = enum.auto()
    EARLIEST = enum.auto()
    BY_DURATION = enum.auto()


class AutoOffsetReset(NamedTuple):
    """`share.auto.offset.reset`."""

    kind: ResetKind
    back_ms: int = 0
    """Time before now, for BY_DURATION."""


AT_THE_END: Final = AutoOffsetReset(ResetKind.LATEST)
"""Default of groups without a setting of their own."""


def offset_reset(text: str) -> AutoOffsetReset:
    """A value of `share.auto.offset.reset`. Raises ValueError if it is none."""
    back_ms = duration_ms(text)
    if back_ms is not None:
        return AutoOffsetReset(ResetKind.BY_DURATION, back_ms)
    return AutoOffsetReset(ResetKind.EARLIEST) if text == EARLIEST else AT_THE_END


@dataclasses.dataclass(frozen=True, slots=True)
class ShareGroupSettings:
    """Of the group if it has its own, else of the broker."""

    delivery_count_limit: int
    """Deliveries of a record, after which it is archived when it is released."""
    max_record_locks: int
    """Records in flight at one time."""
    record_lock_duration_ms: int
    """Time for which an acquired record is locked."""
    is_renewal_enabled: bool = True
    is_read_committed: bool = False
    auto_offset_reset: AutoOffsetReset = AT_THE_END
