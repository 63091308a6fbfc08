"""What the job `activity` has written, from its topics or from its tables, as plain values."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from spark_jobs.visitors.activity_tables import TOPICS
from tests.spark_jobs.data import website
from tests.spark_jobs.data.outside_readers import rows_of
from tests.spark_jobs.kafka.consuming import read_topic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.spark_jobs.data.website import Event

Rows = list[dict[str, Any]]


def of_topics(servers: str, prefix: str) -> dict[str, Rows]:
    """Return the last record of each key, by the last word of the topic."""
    found = {}
    for name in TOPICS:
        records = sorted(read_topic(servers, f"{prefix}.{name}"))
        found[name] = [*{r.key: json.loads(r.value or b"") for r in records}.values()]
    return found


def of_tables(place: Path) -> dict[str, Rows]:
    """Return the rows of each table."""
    return {
        name: rows_of(place / name, "milliseconds" if name == "sessions" else "seconds")
        for name in (*TOPICS, "pages")
    }


def check(results: Mapping[str, Rows], events: Sequence[Event]) -> None:
    """Compare what was written with what the events come to."""
    closed = website.closed_sessions(events)
    names = ("visitor", "start", "end", "entry", "exit", "events")
    found = Counter(tuple(row[name] for name in names) for row in results["sessions"])
    assert found == website.session_rows(closed)
    step = ("granularity", "start", "funnel", "number")
    assert _by(results["funnels"], step, "sessions") == website.funnel_counts(closed)
    pair = ("granularity", "start", "from", "to")
    assert _by(results["transitions"], pair, "times") == website.transition_counts(closed)
    assert {
        (row["granularity"], row["start"]): [(p["page"], p["views"]) for p in row["top"]]
        for row in results["top-pages"]
    } == website.top_pages(events)
    if "pages" in results:
        page = ("granularity", "start", "page")
        assert _by(results["pages"], page, "views") == website.page_counts(events)


def _by(rows: Rows, key: tuple[str, ...], value: str) -> dict[tuple[Any, ...], int]:
    found = {tuple(row[name] for name in key): row[value] for row in rows}
    assert len(found) == len(rows), "two rows have the same key"
    return found
