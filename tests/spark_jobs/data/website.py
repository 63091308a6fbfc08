"""What the job `activity` must find, in plain Python, from nothing but the bytes of the topic."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.spark_jobs.kafka.consuming import Read

GAP, WATERMARK = timedelta(minutes=30), timedelta(minutes=15)
WINDOWS = {"1 hour": timedelta(hours=1), "1 day": timedelta(days=1)}
FUNNELS = {
    "purchase": ["product", "cart", "checkout", "thanks"],
    "search": ["search", "product", "cart"],
}
KEYS = {"id", "at", "visitor", "page", "referrer", "device", "load_ms"}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, order=True)
class Event:
    at: datetime
    partition: int
    offset: int
    visitor: str = field(compare=False)
    page: str = field(compare=False)

    @property
    def step(self) -> str:
        return self.page.split("/")[1].split("?")[0] or "home"


def valid_events(records: Iterable[Read]) -> list[Event]:
    """Return the events of this year that are whole."""
    events = []
    for record in records:
        try:
            found = json.loads((record.value or b"").decode())
            if set(found) != KEYS or not found["visitor"] or found["load_ms"] < 0:
                continue
            at = datetime.fromisoformat(found["at"])
        except (ValueError, TypeError):
            continue
        is_whole = isinstance(found["visitor"], str) and found["page"].startswith("/")
        if is_whole and at.year == 2026:
            place = (record.partition, record.offset)
            events.append(Event(at, *place, found["visitor"], found["page"]))
    return sorted(events)


def watermark_of(events: Iterable[Event]) -> datetime:
    """Return the watermark after all events."""
    return max(event.at for event in events) - WATERMARK


def sessions(events: Sequence[Event]) -> list[list[Event]]:
    """Return the events of each session."""
    by_visitor: dict[str, list[list[Event]]] = defaultdict(list)
    for event in events:
        found = by_visitor[event.visitor]
        if found and event.at - found[-1][-1].at <= GAP:
            found[-1].append(event)
        else:
            found.append([event])
    return [session for found in by_visitor.values() for session in found]


def closed_sessions(events: Sequence[Event]) -> list[list[Event]]:
    """Return the sessions that the watermark has passed."""
    watermark = watermark_of(events)
    return [session for session in sessions(events) if session[-1].at + GAP <= watermark]


def _starts(at: datetime) -> Iterable[tuple[str, str]]:
    for name, length in WINDOWS.items():
        start = at - (at - EPOCH) % length
        yield name, f"{start:%Y-%m-%dT%H:%M:%SZ}"


def session_rows(found: Iterable[list[Event]]) -> Counter[tuple[Any, ...]]:
    """Return visitor, start, end, entry, exit, and number of events of sessions."""
    return Counter(
        (s[0].visitor, millis(s[0].at), millis(s[-1].at), s[0].page, s[-1].page, len(s))
        for s in found
    )


def millis(at: datetime) -> str:
    """Return an instant as text, with milliseconds."""
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"


def reached(session: Sequence[Event], steps: Sequence[str]) -> int:
    """Return how many steps of a funnel the session took in order."""
    rest = iter(event.step for event in session)
    return next((n for n, step in enumerate(steps) if step not in rest), len(steps))


def funnel_counts(found: Iterable[list[Event]]) -> dict[tuple[str, str, str, int], int]:
    """Return sessions by granularity, start, funnel and number of the step."""
    counts: dict[tuple[str, str, str, int], int] = defaultdict(int)
    for session in found:
        for window in _starts(session[0].at):
            for name, steps in FUNNELS.items():
                took = reached(session, steps)
                for number in range(1, len(steps) + 1):
                    counts[*window, name, number] += number <= took
    return dict(counts)


def transition_counts(found: Iterable[list[Event]]) -> Counter[tuple[str, str, str, str]]:
    """Return how often each way was gone, by granularity, start, from and to."""
    counts: Counter[tuple[str, str, str, str]] = Counter()
    for session in found:
        path = ["(start)", *(event.step for event in session), "(end)"]
        for window in _starts(session[0].at):
            counts.update((*window, *pair) for pair in pairwise(path))
    return counts


def page_counts(events: Iterable[Event]) -> Counter[tuple[str, str, str]]:
    """Return views by granularity, start and page."""
    return Counter((*window, event.page) for event in events for window in _starts(event.at))


def top_pages(events: Iterable[Event], top: int = 10) -> dict[tuple[str, str], list[Any]]:
    """Return the pages with most views, and these, by granularity and start."""
    pages: dict[tuple[str, str], list[tuple[str, int]]] = defaultdict(list)
    for (granularity, start, page), views in page_counts(events).items():
        pages[granularity, start].append((page, views))
    return {
        window: sorted(found, key=lambda pair: (-pair[1], pair[0]))[:top]
        for window, found in pages.items()
    }
