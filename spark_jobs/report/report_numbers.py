"""The numbers of the report's page, and how points of time are put into buckets."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MOST_BUCKETS = 400
"""A plot shows no more; the next longer bucket is taken instead."""

_BUCKETS = (
    (1, "second"),
    (10, "10 seconds"),
    (60, "minute"),
    (600, "10 minutes"),
    (3600, "hour"),
    (6 * 3600, "6 hours"),
    (86_400, "day"),
    (7 * 86_400, "week"),
    (364 * 86_400, "52 weeks"),
)
_MONDAY = 4 * 86_400
"""Days began on a Thursday: weeks are counted from the Monday after."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """A length of time that records are counted by."""

    seconds: int
    word: str

    @classmethod
    def for_span(cls, first: int, last: int) -> Bucket:
        """Return the shortest one of which no more than `MOST_BUCKETS` fit (seconds of UTC)."""
        for seconds, word in _BUCKETS:
            if (last - first) // seconds < MOST_BUCKETS:
                return cls(seconds, word)
        return cls(*_BUCKETS[-1])

    @property
    def begin(self) -> int:
        """A second that one of the buckets begins with."""
        return _MONDAY

    def start_of(self, second: int) -> int:
        """Return the second that the bucket of `second` begins with."""
        return (second - self.begin) // self.seconds * self.seconds + self.begin


@dataclass(frozen=True, slots=True)
class Throughput:
    """How many records fall into each bucket of time; those without any are there, with 0."""

    name: str
    """Topic, or whatever the records have in common."""

    bucket: Bucket
    points: list[tuple[datetime, int]]

    @property
    def records(self) -> int:
        """All of them."""
        return sum(count for _, count in self.points)

    def within(self, bucket: Bucket) -> Throughput:
        """Return the same in buckets as long or longer."""
        if bucket == self.bucket:
            return self
        return self.of(self.name, bucket, {int(at.timestamp()): n for at, n in self.points})

    @classmethod
    def of(cls, name: str, bucket: Bucket, counts: Mapping[int, int]) -> Throughput:
        """Make it of counts by second, or by bucket's begin."""
        sums: dict[int, int] = {}
        for second, count in counts.items():
            start = bucket.start_of(second)
            sums[start] = sums.get(start, 0) + count
        starts = range(min(sums), max(sums) + 1, bucket.seconds) if sums else ()
        return cls(name, bucket, [(as_time(start), sums.get(start, 0)) for start in starts])


def as_time(second: int) -> datetime:
    """Return a second of UTC as a time."""
    return datetime.fromtimestamp(second, UTC)


@dataclass(frozen=True, slots=True)
class TopicNumbers:
    """What a topic holds."""

    topic: str
    partitions: int
    records: int
    value_bytes: int
    first: datetime
    last: datetime
    """Timestamps of records."""


@dataclass(frozen=True, slots=True)
class GroupLag:
    """How far a consumer group is behind one partition."""

    group: str
    topic: str
    partition: int
    committed: int
    end: int

    @property
    def lag(self) -> int:
        """Records not taken yet."""
        return max(self.end - self.committed, 0)


@dataclass(frozen=True, slots=True)
class JobBatch:
    """A batch of a job, from its file of metrics."""

    at: datetime
    rows: int
    rate: float
    """Records per second."""

    lag: int
    """Records that were there and not taken when the batch ended."""


@dataclass(frozen=True, slots=True)
class JobNumbers:
    """A query of a job, batch by batch."""

    query: str
    batches: list[JobBatch]
    dropped: int
    """Rows that came too late for their window."""


@dataclass(frozen=True, slots=True)
class WindowShare:
    """What a measure came to in one group and one hour of the day."""

    group: str
    hour: int
    above: float
    below: float

    @property
    def ratio(self) -> float:
        """The measure."""
        return self.above / self.below


@dataclass(frozen=True, slots=True)
class WindowNumbers:
    """Windows, summed up by group and hour of the day."""

    topic: str
    granularity: str
    """How long each is."""

    label: str
    """What the measure is."""

    is_share: bool
    """Whether it is shown in percent."""

    group_label: str
    zone: str
    windows: int
    shares: list[WindowShare]


@dataclass(frozen=True, slots=True)
class ReportNumbers:
    """All that the page shows; a part that there was nothing of is empty or None."""

    title: str
    made_at: datetime
    source: str
    """Topic, or directory of the archive, that event times were read from."""

    valid: int
    rejected: int
    by_event_time: Throughput | None
    topics: list[TopicNumbers] = field(default_factory=list)
    by_append_time: list[Throughput] = field(default_factory=list)
    jobs: list[JobNumbers] = field(default_factory=list)
    groups: list[GroupLag] = field(default_factory=list)
    windows: WindowNumbers | None = None
    reasons: dict[str, int] = field(default_factory=dict)
    """Rejects by reason, each record counted once."""

    rejects_topic: str = ""


def overlapping(series: Iterable[Throughput]) -> list[list[Throughput]]:
    """Put series together whose times overlap, in the same bucket: each list fits on one axis."""
    together: list[list[Throughput]] = []
    for one in sorted((s for s in series if s.points), key=lambda s: s.points[0][0]):
        last = max((s.points[-1][0] for s in together[-1]), default=None) if together else None
        if last is not None and one.points[0][0] <= last:
            together[-1].append(one)
        else:
            together.append([one])
    return [_in_one_bucket(group) for group in together]


def _in_one_bucket(group: list[Throughput]) -> list[Throughput]:
    first = min(one.points[0][0] for one in group)
    last = max(one.points[-1][0] for one in group)
    longest = max((one.bucket for one in group), key=lambda bucket: bucket.seconds)
    fitting = Bucket.for_span(int(first.timestamp()), int(last.timestamp()))
    bucket = max(longest, fitting, key=lambda bucket: bucket.seconds)
    return [one.within(bucket) for one in group]


def largest(series: list[Throughput], most: int) -> list[Throughput]:
    """Return at most `most` series, of one bucket: the largest, and the others as one."""
    if len(series) <= most:
        return series
    by_size = sorted(series, key=lambda one: -one.records)
    kept, others = by_size[: most - 1], by_size[most - 1 :]
    sums: dict[int, int] = {}
    for one in others:
        for at, count in one.points:
            second = int(at.timestamp())
            sums[second] = sums.get(second, 0) + count
    return [*kept, Throughput.of(f"{len(others)} others", series[0].bucket, sums)]
