"""Job: run another job over a range of offsets or times of its topic, as a batch.

    python -m spark_jobs backfill route --from-time 2013-03-01 --to-time 2013-04-01 --topic flights
    python -m spark_jobs backfill archive --from-offset '{"0": 500, "1": 480}' --to-offset 9000

After the job's name come the range and the job's own options. Each bound is an offset (a number
for all partitions, or JSON by partition) or a time (ISO, UTC by default); the range includes the
first bound and excludes the second. The bounds default to the topic's current start and end. The
range is fixed, and shown, before anything is read.

A time stands for an offset, as everywhere in Kafka: that of the first record with the same or a
later timestamp. If a topic's timestamps do not ascend, a range by time can hold records of other
times.

A bound before the topic's first record is an error; one beyond the end is the end.

Backfill neither keeps a checkpoint nor touches one: the streaming job continues from where it was.
A second run over the same range writes the same again. Jobs that write to topics write duplicates
with the same header `source`, so that readers can drop them. The archive knows each record by its
offset and holds it once. Windows and sessions get the same keys and values, and hold only the
records of the range.
"""

from __future__ import annotations

import inspect
import json
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

if not __package__:  # given to spark-submit as a file: let the imports below find the package
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import spark_jobs.dependency_check  # noqa: F401 - first of all: it says what is not installed

# isort: split
from pydantic import BeforeValidator, create_model, model_validator
from rich.console import Console
from rich.table import Table

from spark_jobs.errors import BadOptionError, JobError, exit_code_of
from spark_jobs.jobs.catalogue import job_module
from spark_jobs.kafka.offsets import open_offsets
from spark_jobs.kafka.topics import open_topics
from spark_jobs.options import DefinitionOptions, SparkOptions, parse_options
from spark_jobs.program import PROGRAM
from spark_jobs.spark.spark_session import spark_session
from spark_jobs.spark.streams import read_batch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.kafka.offsets import Offsets

NAME = "backfill"

TAKERS = ("route", "archive", "aggregate", "activity", "logs", "enrich", "retry")
"""The jobs that can be run over a range: those with a function `take`."""

USAGE = f"usage: {PROGRAM} backfill {{{','.join(TAKERS)}}} [range] [the job's options]"


def _bound(value: object) -> object:
    """Return an offset for all partitions, or a `dict` of offsets by partition."""
    if value is None or isinstance(value, int | dict):
        return value
    try:
        found = json.loads(str(value))
        offsets = found.values() if isinstance(found, dict) else [found]
        if all(type(offset) is int and offset >= 0 for offset in offsets):
            return found
    except ValueError:
        pass
    raise ValueError('expected an offset, or JSON of partitions and offsets, as {"0": 5, "1": 9}')


def _instant(value: object) -> object:
    """Return a time with its zone."""
    if value is None or isinstance(value, datetime):
        return value
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError:
        raise ValueError("expected a time as 2013-03-01 or 2013-03-01T06:30:00Z") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


Bound = Annotated[int | dict[int, int] | None, BeforeValidator(_bound)]
Instant = Annotated[datetime | None, BeforeValidator(_instant)]


class RangeOptions(SparkOptions):
    """Which part of the topic to take."""

    from_offset: Bound = None
    """first offset: a number for all partitions, or JSON by partition as {"0": 5, "1": 9}"""

    to_offset: Bound = None
    """offset to stop before, given like --from-offset"""

    from_time: Instant = None
    """time of the first record (ISO, UTC by default)"""

    to_time: Instant = None
    """time to stop before"""

    @model_validator(mode="after")
    def _one_bound_each(self) -> RangeOptions:
        for side in ("from", "to"):
            if None not in (getattr(self, f"{side}_offset"), getattr(self, f"{side}_time")):
                raise ValueError(f"--{side}-offset and --{side}-time exclude each other")
        return self


class TakingOptions(DefinitionOptions, RangeOptions):
    """What is used here of the options of a job with `take`."""


@dataclass(frozen=True, slots=True)
class Range:
    """What to read: offsets by partition, the end not included."""

    topic: str
    starting: dict[int, int]
    ending: dict[int, int]

    @property
    def offsets(self) -> int:
        """How many offsets lie in the range."""
        return sum(self.ending.values()) - sum(self.starting.values())


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job that is named first; return the process's exit code."""
    return exit_code_of(lambda: _run(list(sys.argv[1:] if argv is None else argv)))


def _run(argv: list[str]) -> int:
    if not argv or argv[0] in {"-h", "--help"}:
        print(USAGE, "", __doc__, sep="\n")
        return 0
    job, *flags = argv
    if job not in TAKERS:
        raise BadOptionError(f"backfill: '{job}' is none of {', '.join(TAKERS)}")
    module = job_module(job)
    description = f"Run {job} over a range of its topic, as a batch."
    options = parse_options(options_model(module), flags, f"{NAME} {job}", description)
    with spark_session(options, f"{NAME} {job}") as spark:
        chosen = resolve(spark, options, topic_of(job, options))
        Console().print(_table(chosen))
        module.take(spark, read_range(spark, options, chosen), options)
    print(f"{NAME}: {job} has taken {chosen.offsets:,} offsets of {chosen.topic}")
    return 0


def options_model(module: ModuleType) -> type[TakingOptions]:
    """Return the job's options and those of the range as one model."""
    name = inspect.signature(module.take).parameters["options"].annotation
    bases: Any = (RangeOptions, getattr(module, name))
    model: type[TakingOptions] = create_model(f"Backfill{name}", __base__=bases)
    return model


def topic_of(job: str, options: TakingOptions) -> str:
    """Return the topic that the job reads: what was rejected, where it tries that again."""
    return options.rejects() if job == "retry" else options.topic


def resolve(spark: SparkSession, options: RangeOptions, topic: str) -> Range:
    """Return the offsets that the bounds stand for now; raise `JobError` if they cannot be."""
    with open_topics(spark, options) as topics:
        topics.require(topic, "name the one to read with --topic")
    with open_offsets(spark, options) as offsets:
        first, end = offsets.earliest(topic), offsets.latest(topic)
        starting = _resolved(offsets, options, "from", Range(topic, first, end))
        ending = _resolved(offsets, options, "to", Range(topic, first, end))
    for partition, offset in starting.items():
        place = f"partition {partition} of {topic}"
        if offset < first[partition]:
            raise JobError(
                f"{place} begins at offset {first[partition]}: {offset} to {first[partition] - 1} "
                "are gone, by retention or because they were deleted; begin there"
            )
        ending[partition] = min(ending[partition], end[partition])
        starting[partition] = min(offset, end[partition])
        if starting[partition] > ending[partition]:
            raise JobError(
                f"{place}: the range would begin at offset {starting[partition]} and stop "
                f"before {ending[partition]}"
            )
    return Range(topic, starting, ending)


def read_range(spark: SparkSession, options: SparkOptions, chosen: Range) -> DataFrame:
    """Return the records of a range, with the columns of Spark's Kafka source."""
    starting, ending = {chosen.topic: chosen.starting}, {chosen.topic: chosen.ending}
    return read_batch(spark, options, [chosen.topic], starting, ending)


def _resolved(offsets: Offsets, options: RangeOptions, side: str, whole: Range) -> dict[int, int]:
    given: Any = getattr(options, f"{side}_offset")
    time: datetime | None = getattr(options, f"{side}_time")
    otherwise = whole.starting if side == "from" else whole.ending
    if time is not None:
        return offsets.at_time(whole.topic, int(time.timestamp() * 1000))
    if isinstance(given, dict):
        unknown = sorted(set(given) - set(otherwise))
        if unknown:
            raise JobError(
                f"--{side}-offset: {whole.topic} has partitions 0 to {len(otherwise) - 1}, "
                f"and no {unknown[0]}"
            )
        return otherwise | given
    return dict(otherwise) if given is None else dict.fromkeys(otherwise, given)


def _table(chosen: Range) -> Table:
    table = Table(title=f"Range of {chosen.topic}", title_justify="left")
    for name in ("partition", "from offset", "to before", "offsets"):
        table.add_column(name, justify="right")
    for partition, start in chosen.starting.items():
        end = chosen.ending[partition]
        table.add_row(str(partition), f"{start:,}", f"{end:,}", f"{end - start:,}")
    return table


if __name__ == "__main__":
    sys.exit(main())
