"""The jobs by name, with a line about each; `python -m spark_jobs` shows it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import spark_jobs

if TYPE_CHECKING:
    from types import ModuleType

JOBS = {
    "route": "validate each record, add names to its codes, send it to its topic",
    "archive": "archive a topic as a Delta or Iceberg table, each record exactly once",
    "aggregate": "count and sum in event-time windows, into a compacted topic and a table",
    "activity": "follow a website's visitors: sessions, funnels, transitions, top pages",
    "collect_logs": "tail log files and produce each line to a topic, exactly once",
    "logs": "parse the lines that collect_logs produced, monitor their error rate",
    "enrich": "join a stream with a slowly changing table, kept in a compacted topic",
    "retry": "retry rejected records at growing intervals, then keep them as dead letters",
    "audit": "compare a topic with its archive, record by record; list gaps and duplicates",
    "backfill": "run another job over a range of offsets or times, as a batch",
    "registry": "serve a schema registry, with Confluent's REST interface, on a topic",
    "report": "plot throughput, lag, windows and rejects on one HTML page",
    "produce_flights": "produce the flights of 2013, with damaged lines among them",
    "produce_planes": "produce the planes of these flights, as a table keyed by tail number",
    "produce_activity": "produce synthetic website activity, the same for the same seed",
    "check": "check definition files: all mistakes, each with its line",
    "infer": "write a definition from a sample of a topic",
    "pipeline": "run all jobs on a year of flights, end to end",
}
"""Each is a module with a `main(argv)` that returns an exit code; see `job_module`."""


ROOMS = {
    **dict.fromkeys(("check", "infer"), "definition_tools"),
    **{name: name for name in ("pipeline", "registry")},
}
"""Packages of the jobs that are not in `jobs`."""


def job_module(name: str) -> ModuleType:
    """The module of a job of `JOBS`, imported only now: most of them load Spark."""
    room = ROOMS.get(name, "jobs")
    return importlib.import_module(f"{spark_jobs.__name__}.{room}.{name}")
