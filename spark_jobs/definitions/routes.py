"""Where a valid record goes: the section [route] of a definition.

    [route]
    leave_out = ["hour_time"]          what it goes on as: see `outputs`
    [[route.routes]]
    name = "delayed"
    topic = "flights.delayed"
    when = "arr_delay >= 15"           SQL; the first route for which it holds takes the record
    [[route.routes]]
    name = "on-time"                   a last one without `when` takes all others
    topic = "flights.on-time"

Each route may have its own `columns`, `leave_out`, `also` and `key`, in place of the section's. A
route without a topic filters its records out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from spark_jobs.definitions.fields import Reason  # noqa: TC001 - pydantic evaluates it
from spark_jobs.definitions.outputs import Output, OutputSection, json_sql, key_sql, require_output
from spark_jobs.definitions.typed_records import require_sql
from spark_jobs.options import TopicName  # noqa: TC001 - pydantic evaluates it

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from spark_jobs.definitions.definition import Definition, Record

MADE = ("event_time", "route")
"""Columns of each output beside the record's."""


def _not_rejected(name: str) -> str:
    if name == "rejected":
        raise ValueError("'rejected' is where records go that break a rule")
    return name


class Route(Output):
    """A kind of record, and its topic."""

    name: Annotated[Reason, AfterValidator(_not_rejected)]
    """what outputs and counts call it"""

    topic: TopicName | None = None
    """where its records go; they are filtered out when not given"""

    when: str | None = None
    """SQL condition; NULL counts as false"""


class RouteSection(OutputSection):
    """The section [route]."""

    routes: Annotated[tuple[Route, ...], Field(min_length=1)]
    """in order: the first whose `when` holds takes the record"""

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        names = [route.name for route in self.routes]
        if len(set(names)) < len(names):
            raise ValueError("two routes have the same name")
        if any(route.when is None for route in self.routes[:-1]):
            raise ValueError("only the last route may lack `when`: those after it get nothing")
        return self

    def topics(self) -> dict[str, str]:
        """Return the topic of each route that has one."""
        return {route.name: route.topic for route in self.routes if route.topic is not None}

    def outputs(self) -> Iterator[tuple[str, Output]]:
        """Yield each route's name with what its records go on as."""
        own = {name: getattr(self, name) for name in Output.model_fields}
        for route in self.routes:
            given = Output.model_fields.keys() & route.model_fields_set
            yield route.name, Output(**own | {name: getattr(route, name) for name in given})


def require_routes(rows: DataFrame, definition: Definition, section: RouteSection) -> None:
    """Raise `BadOptionError` that names the expression of the section which Spark refuses."""
    require_output(rows, definition, "route", section)
    for index, route in enumerate(section.routes):
        place = f"route.routes.{index}"
        if route.when is not None:
            require_sql(rows, definition, f"{place}.when", route.when, is_condition=True)
        require_output(rows, definition, place, route)


def route_sql(section: RouteSection) -> str:
    """Return SQL that names a valid record's route; NULL when none takes it."""
    cases = " ".join(f"WHEN {r.when} THEN '{r.name}'" for r in section.routes if r.when)
    last = section.routes[-1]
    otherwise = "cast(NULL AS string)" if last.when else f"'{last.name}'"
    return f"CASE {cases} ELSE {otherwise} END" if cases else otherwise


def topic_sql(section: RouteSection) -> str:
    """Return SQL for the topic of `route`."""
    return _by_route({name: f"'{topic}'" for name, topic in section.topics().items()})


def routed_json_sql(section: RouteSection, record: Record) -> str:
    """Return SQL for the output, as text, of a record with `route`."""
    return _by_route({name: json_sql(output, record, MADE) for name, output in section.outputs()})


def routed_key_sql(section: RouteSection) -> str:
    """Return SQL for the output's key, as bytes, of a record with `route`."""
    return _by_route({name: key_sql(output) for name, output in section.outputs()})


def _by_route(values: dict[str, str]) -> str:
    """Return SQL that chooses by `route`; routes with the same value share one expression."""
    routes: dict[str, list[str]] = {}
    for route, value in values.items():
        routes.setdefault(value, []).append(f"'{route}'")
    cases = (f"WHEN route IN ({', '.join(names)}) THEN {value}" for value, names in routes.items())
    return f"CASE {' '.join(cases)} END" if routes else "cast(NULL AS string)"
