"""A whole definition file as one model: for `check`, for editors, and for the reference page."""

# ruff: noqa: TC001 - pydantic evaluates the types of the sections

from __future__ import annotations

from typing import Any

from pydantic import Field

from spark_jobs.definitions.definition import Record
from spark_jobs.definitions.fields import Section
from spark_jobs.definitions.log_formats import LogSection
from spark_jobs.definitions.routes import RouteSection
from spark_jobs.definitions.window_aggregates import AggregateSection
from spark_jobs.jobs.enrich import EnrichSection
from spark_jobs.report.report_sources import ReportSection
from spark_jobs.retry.retry_records import RetrySection
from spark_jobs.visitors.visitor_sessions import ActivitySection


class DefinitionFile(Section):
    """The records of a topic, and what jobs do with them."""

    parameters: dict[str, str | int | float | bool] = Field(default={})
    """values that ${name} stands for in the rest of the file; `--set name=value` changes one"""

    record: Record
    """what a record is"""

    route: RouteSection | None = None
    """where `route` sends a record"""

    aggregate: AggregateSection | None = None
    """what `aggregate` counts in windows, by the name of the aggregate"""

    enrich: EnrichSection | None = None
    """the table that `enrich` joins records with"""

    activity: ActivitySection | None = None
    """what `activity` follows visitors by"""

    logs: LogSection | None = None
    """formats of the lines that `logs` parses"""

    retry: RetrySection | None = None
    """which rejects `retry` takes in again"""

    report: ReportSection | None = None
    """what `report` draws of windows"""


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a definition file."""
    schema = DefinitionFile.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
