"""Settings of one share group, as the leader of a partition needs them."""

from __future__ import annotations

import dataclasses
import enum
import re
from typing import Final, NamedTuple

LATEST: Final = "latest"
EARLIEST: Final = "earliest"
BY_DURATION: Final = "by_duration:"
_DURATION = re.compile(
    r"([-+]?)P(?:([-+]?\d+)D)?"
    r"(?:(T)(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+)(?:[.,](\d{0,9}))?S)?)?",
    re.IGNORECASE,
)


class ResetKind(enum.Enum):
    """Where a share group begins in a partition of which it has consumed nothing."""

    LATEST = enum.auto()
    EARLIEST = enum.auto()
    BY_DURATION = enum.auto()


class AutoOffsetReset(NamedTuple):
    """`share.auto.offset.reset`."""

    kind: ResetKind
    back_ms: int = 0
    """How far back from now, for BY_DURATION."""


AT_THE_END: Final = AutoOffsetReset(ResetKind.LATEST)
"""What holds for groups that have no setting of their own."""


def parse_offset_reset(text: str) -> AutoOffsetReset:
    """The value of `share.auto.offset.reset`. Raises ValueError if it is none."""
    lowered = text.lower()
    if lowered == LATEST:
        return AT_THE_END
    if lowered == EARLIEST:
        return AutoOffsetReset(ResetKind.EARLIEST)
    if lowered.startswith(BY_DURATION):
        return AutoOffsetReset(ResetKind.BY_DURATION, _duration_ms(text[len(BY_DURATION) :]))
    raise ValueError(f"{text!r} is none of latest, earliest and by_duration:<ISO 8601 duration>")


def _duration_ms(text: str) -> int:
    """Milliseconds of a duration such as P1DT2H30M, as `java.time.Duration` reads it."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no ISO 8601 duration")
    sign, days, time, hours, minutes, seconds, fraction = match.groups()
    has_time = hours is not None or minutes is not None or seconds is not None
    if (days is None and not has_time) or (time is not None and not has_time):
        raise ValueError(f"{text!r} is no ISO 8601 duration")
    whole = int(days or 0) * 86_400 + int(hours or 0) * 3600 + int(minutes or 0) * 60
    milliseconds = (whole + int(seconds or 0)) * 1000
    part = int((fraction or "").ljust(3, "0")[:3])
    milliseconds += -part if (seconds or "").startswith("-") else part
    if sign == "-":
        milliseconds = -milliseconds
    if milliseconds < 0:
        raise ValueError(f"{text!r} is a negative duration")
    return milliseconds


@dataclasses.dataclass(frozen=True, slots=True)
class ShareGroupSettings:
    """Of the group if it has its own, else of the broker."""

    delivery_count_limit: int
    """Deliveries of a record, after which it is archived when it is released."""
    max_record_locks: int
    """Records in flight at one time."""
    record_lock_duration_ms: int
    """How long a record is acquired before others may have it."""
    is_renewal_enabled: bool = True
    is_read_committed: bool = False
    auto_offset_reset: AutoOffsetReset = AT_THE_END
