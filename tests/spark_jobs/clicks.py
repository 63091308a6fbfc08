"""Some hours of made-up website activity for tests, and what plain Python makes of it."""

from __future__ import annotations

import functools
import json
from collections import Counter
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

from spark_jobs.visits import Site

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_jobs.feed import Line

EVENTS = 1_900
SITE = Site(pace=0.15, visitors=300)
GAP = timedelta(minutes=30)

SURELY_CLOSED = "2026-01-05T01:45"
"""What ended before it is closed when the last batch begins: the events go on until 03:18."""

Session = tuple[str, str, str, int]
"""Visitor, time of the first event and of the last, number of events."""


@functools.cache
def lines() -> list[Line]:
    """Return the lines to produce."""
    return [*islice(SITE.lines(), EVENTS)]


def events() -> list[dict[str, Any]]:
    """Return the events of the lines."""
    return [json.loads(line.value or b"") for line in lines()]


def views_by_hour() -> dict[tuple[str, str], int]:
    """Return how often each page was opened in each hour."""
    return dict(Counter((f"{event['at'][:13]}:00:00Z", event["page"]) for event in events()))


def sessions() -> Iterator[Session]:
    """Yield what each visitor did without a pause of the gap or longer."""
    times: dict[str, list[str]] = {}
    for event in events():
        times.setdefault(event["visitor"], []).append(event["at"])
    for visitor, instants in times.items():
        begin = 0
        for place in range(1, len(instants) + 1):
            if place == len(instants) or _is_pause(instants[place - 1], instants[place]):
                yield visitor, instants[begin], instants[place - 1], place - begin
                begin = place


def _is_pause(before: str, after: str) -> bool:
    return datetime.fromisoformat(after) - datetime.fromisoformat(before) >= GAP
