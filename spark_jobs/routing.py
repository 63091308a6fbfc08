"""Where a valid record goes, and what it goes on as: the section [route] of a definition.

    [route]
    leave_out = ["hour_time"]          made columns that the output lacks
    [route.also]
    kmh = "distance / air_time * 97"   SQL; more keys of the output
    [[route.routes]]
    name = "delayed"
    topic = "flights.delayed"
    when = "arr_delay >= 15"           SQL; the first route for which it holds takes the record
    [[route.routes]]
    name = "on-time"                   a last one without `when` takes all others
    topic = "flights.on-time"

The output is a JSON object: the fields, the made columns, `event_time`, `route`, `source`, and the
keys of `also`. `columns` names the ones to take instead of all; `key` is SQL for the record's key,
which otherwise stays what it was. Each route may have its own `columns`, `leave_out`, `also` and
`key`, in place of those above it. A route without a topic filters its records out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Self

from pydantic import AfterValidator, Field, PositiveInt, model_validator

from spark_jobs.definition import ColumnName, Reason, Section
from spark_jobs.options import TopicName  # noqa: TC001 - pydantic evaluates it
from spark_jobs.parsed import columns_made
from spark_jobs.rejects import KEEP_NULLS, SOURCE_SQL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_jobs.definition import Record

NO_ROUTE, TOO_LARGE = "no-route", "too-large-output"
ALWAYS_MADE = ("event_time", "route")
"""Columns of each output beside the record's; `source` is the last key."""


def _not_rejected(name: str) -> str:
    if name == "rejected":
        raise ValueError("'rejected' is where records go that break a rule")
    return name


class Output(Section):
    """What a record goes on as."""

    columns: tuple[ColumnName, ...] | None = None
    """fields and made columns to take, in order; all when not given"""

    leave_out: tuple[ColumnName, ...] = ()
    """columns not to take"""

    also: dict[ColumnName, str] = Field(default={})
    """SQL of further keys"""

    key: str | None = None
    """SQL of the record's key, written as text; the key it came with when not given"""


class Route(Output):
    """A kind of record, and its topic."""

    name: Annotated[Reason, AfterValidator(_not_rejected)]
    topic: TopicName | None = None
    """where its records go; they are filtered out when not given"""

    when: str | None = None
    """SQL condition; NULL counts as false"""


class RouteSection(Output):
    """The section [route]."""

    routes: Annotated[tuple[Route, ...], Field(min_length=1)]
    max_bytes: PositiveInt = 1_000_000
    """longer outputs, key included, are rejected as `too-large-output`: no topic takes them"""

    @model_validator(mode="after")
    def _make_sense(self) -> Self:
        names = [route.name for route in self.routes]
        if len(set(names)) < len(names):
            raise ValueError("two routes have the same name")
        if any(route.when is None for route in self.routes[:-1]):
            raise ValueError("only the last route may lack `when`: those after it get nothing")
        return self

    def topics(self) -> dict[str, str]:
        """Return the topic of each route that has one."""
        return {route.name: route.topic for route in self.routes if route.topic is not None}

    def outputs(self) -> Iterator[tuple[Route, Output]]:
        """Yield each route with what its records go on as."""
        own = self.model_dump(include=set(Output.model_fields))
        for route in self.routes:
            given = route.model_dump(include=set(Output.model_fields) & route.model_fields_set)
            yield route, Output(**own | given)


def route_sql(section: RouteSection) -> str:
    """Return SQL that names a valid record's route; NULL when none takes it."""
    cases = " ".join(f"WHEN {r.when} THEN '{r.name}'" for r in section.routes if r.when)
    last = section.routes[-1]
    otherwise = "NULL" if last.when else f"'{last.name}'"
    return f"CASE {cases} ELSE {otherwise} END" if cases else otherwise


def topic_sql(section: RouteSection) -> str:
    """Return SQL for the topic of `route`."""
    return _by_route({name: f"'{topic}'" for name, topic in section.topics().items()})


def json_sql(section: RouteSection, record: Record) -> str:
    """Return SQL for the output, as text, of a record with `route`."""
    return _by_route({r.name: _object(output, record) for r, output in section.outputs()})


def key_sql(section: RouteSection) -> str:
    """Return SQL for the output's key, as bytes, of a record with `route`."""
    return _by_route({r.name: _key(output) for r, output in section.outputs()})


def expressions(section: RouteSection) -> Iterator[tuple[str, str, bool]]:
    """Yield place in the file, SQL, and whether it is a condition, for all that is SQL."""
    yield from _output_expressions("route", section)
    for index, route in enumerate(section.routes):
        place = f"route.routes.{index}"
        if route.when is not None:
            yield f"{place}.when", route.when, True
        yield from _output_expressions(place, route)


def _output_expressions(place: str, output: Output) -> Iterator[tuple[str, str, bool]]:
    for name in (*(output.columns or ()), *output.leave_out):
        yield f"{place}.columns", name, False
    for name, sql in output.also.items():
        yield f"{place}.also.{name}", sql, False
    if output.key is not None:
        yield f"{place}.key", output.key, False


def _key(output: Output) -> str:
    return "key" if output.key is None else f"cast(cast({output.key} AS string) AS binary)"


def _object(output: Output, record: Record) -> str:
    every = (*record.fields, *columns_made(record))
    columns = every if output.columns is None else output.columns
    pairs = {name: name for name in (*columns, *ALWAYS_MADE) if name not in output.leave_out}
    pairs |= output.also | {"source": SOURCE_SQL}
    listed = ", ".join(f"'{name}', {sql}" for name, sql in pairs.items())
    return f"to_json(named_struct({listed}), {KEEP_NULLS})"


def _by_route(values: dict[str, str]) -> str:
    """Return SQL that chooses by `route`; routes with the same value share one expression."""
    routes: dict[str, list[str]] = {}
    for route, value in values.items():
        routes.setdefault(value, []).append(f"'{route}'")
    cases = (f"WHEN route IN ({', '.join(names)}) THEN {value}" for value, names in routes.items())
    return f"CASE {' '.join(cases)} END" if routes else "cast(NULL AS string)"
