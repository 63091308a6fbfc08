"""The stages of the pipeline, by the names of `pipeline_options.JOBS` and in that order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_jobs.pipeline.flight_stages import (
    stage_aggregate,
    stage_archive,
    stage_audit,
    stage_enrich,
    stage_produce,
    stage_retry,
    stage_route,
)
from spark_jobs.pipeline.other_stages import stage_activity, stage_logs, stage_report

if TYPE_CHECKING:
    from collections.abc import Callable

    from spark_jobs.pipeline.pipeline_run import Run

STAGES: dict[str, Callable[[Run], str]] = {
    "produce": stage_produce,
    "route": stage_route,
    "retry": stage_retry,
    "aggregate": stage_aggregate,
    "archive": stage_archive,
    "audit": stage_audit,
    "enrich": stage_enrich,
    "activity": stage_activity,
    "logs": stage_logs,
    "report": stage_report,
}
