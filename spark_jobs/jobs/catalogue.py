"""The jobs by name, with a line about each; `python -m spark_jobs` shows it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

JOBS = {
    "route": "filter records, give them names, send each to the topic it belongs to",
    "archive": "keep a topic as Parquet files by event date and hour, each record once",
    "aggregate": "count and sum up over windows of event time, into a compacted topic and a table",
    "activity": "sessions of visitors, funnels from page to page, top pages",
    "collect_logs": "follow log files and produce each of their lines to a topic, once",
    "logs": "parse the lines of log files, watch their error rate",
    "enrich": "join a stream with a compacted topic that is a slowly changing table",
    "retry": "try failed records again, later and later, then keep them as dead letters",
    "audit": "compare what was produced with what is archived; tell gaps and doubles",
    "backfill": "run a job over a range of offsets or times, as a batch",
    "report": "a page of plots from topics or an archive, in one HTML file",
    "produce_flights": "produce the flights of 2013, with damaged lines between them",
    "produce_planes": "produce the planes that fly, as a table by tail number",
    "produce_activity": "produce made-up website activity, the same for the same seed",
    "pipeline": "all of it on a year of flights, end to end",
}
"""Each is a module with a `main(argv)` that returns an exit code; see `job_module`."""


def job_module(name: str) -> ModuleType:
    """The module of a job of `JOBS`, imported only now: most of them load Spark."""
    room = "pipeline" if name == "pipeline" else "jobs"
    return importlib.import_module(f"spark_jobs.{room}.{name}")
