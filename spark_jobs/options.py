"""Options of a job, declared once as a pydantic model, from flags, environment and a file.

A field `shuffle_partitions: PositiveInt = 2` is the flag `--shuffle-partitions 4`, checked and
converted by pydantic, and its docstring is the help text. A `bool` has a `--no-` form too, a
`dict[str, str]` takes `KEY=VALUE` and may be repeated, a tuple takes several values.

What no flag says comes from the environment (`SPARK_JOBS_SHUFFLE_PARTITIONS=4`), then from the
TOML file of `--options-file` (`shuffle_partitions = 4`). In the environment several values stand
with commas between them, and a `dict` is JSON. A file or environment may be shared by several
jobs: what a job has no field for is passed over in the environment, and in the file's tables that
are named for other jobs; each job takes the keys at the top, and those of its own table.
"""

from __future__ import annotations

import argparse
import re
import typing
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PositiveInt,
    ValidationError,
)

from spark_jobs.avro.avro_values import Registry
from spark_jobs.definitions.avro_format import SchemaSource
from spark_jobs.definitions.definition import Definition, load_definition
from spark_jobs.definitions.fields import near
from spark_jobs.errors import BadOptionError
from spark_jobs.option_sources import Given, from_environment, from_file, spelling
from spark_jobs.program import PROGRAM
from spark_jobs.tables.table_format import TableFormat

if typing.TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic.fields import FieldInfo

_SERVER = re.compile(r"([^\s,:\[\]]+|\[[0-9a-fA-F:.%]+\]):(\d{1,5})")
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_DURATION = re.compile(r"[1-9]\d* (second|minute|hour|day)s?")
_HIGHEST_PORT = 65_535
TOPIC_HINT = (
    f"produce to it first, flights with `{PROGRAM} produce_flights`, or name another with --topic"
)
"""For a job whose source is not there."""
PACKAGES = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1",
    "io.delta:delta-spark_4.1_2.13:4.1.0",
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
)
"""Maven coordinates of all that the jobs need besides Spark. Why these versions: decision 51."""

EXCLUDED_PACKAGES = "org.slf4j:slf4j-api"
"""Needed by packages, and part of Spark itself."""


def server_address(server: str) -> tuple[str, int]:
    """Split HOST:PORT; an IPv6 address stands in brackets. Raises ValueError in words."""
    found = _SERVER.fullmatch(server)
    if found is None or not 0 < int(found[2]) <= _HIGHEST_PORT:
        raise ValueError("expected HOST:PORT, or several with commas; IPv6 as [::1]:9092")
    return found[1].strip("[]"), int(found[2])


def _servers(text: str) -> str:
    for server in text.split(","):
        server_address(server)
    return text


def _topic_name(text: str) -> str:
    if not _TOPIC.fullmatch(text):
        raise ValueError("expected letters, digits, '.', '_' and '-', at most 249")
    return text


def _duration(text: str) -> str:
    if not _DURATION.fullmatch(text):
        raise ValueError("expected a number of seconds, minutes, hours or days, as '1 hour'")
    return text


TopicName = Annotated[str, AfterValidator(_topic_name)]
Duration = Annotated[str, AfterValidator(_duration)]
Servers = Annotated[str, AfterValidator(_servers)]


def _without_prefix(settings: dict[str, str]) -> dict[str, str]:
    return {key.removeprefix("kafka."): value for key, value in settings.items()}


ClientSettings = Annotated[dict[str, str], AfterValidator(_without_prefix)]
"""Settings of Kafka's Java clients, with or without Spark's prefix `kafka.`"""

OptionsT = TypeVar("OptionsT", bound=BaseModel)


def rejected_topic(topic: str, given: str | None) -> str:
    """Return the topic for rejected records of `topic`: the one given, or TOPIC.rejected."""
    return given or f"{topic}.rejected"


class Options(BaseModel):
    """What every job's options have in common: unknown ones are errors, none changes later."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class KafkaOptions(Options):
    """How to reach the broker."""

    bootstrap_servers: Servers = "localhost:9092"
    """HOST:PORT of one or more brokers, separated by commas"""

    options_file: Path | None = None
    """TOML file with options: those of all jobs at its top, those of one job in [JOB]"""


class SparkOptions(KafkaOptions):
    """How to run Spark, and how Spark reaches the broker."""

    kafka: ClientSettings = {}
    """a setting of the Kafka clients inside Spark, e.g. security.protocol=SSL; may be repeated"""

    master: str = "local[2]"
    """Spark's master; under spark-submit, its --master unless this is given"""

    spark: dict[str, str] = {}
    """a setting of Spark, e.g. spark.executor.memory=2g; may be repeated"""

    driver_memory: str = "1g"
    """heap of the driver, which does all the work in local mode"""

    shuffle_partitions: PositiveInt = 2
    """tasks per shuffle; fixed for the life of a checkpoint"""

    packages: str = ",".join(PACKAGES)
    """Maven coordinates of the Kafka connector, Delta Lake and Iceberg"""

    log_level: Literal["DEBUG", "INFO", "WARN", "ERROR", "OFF"] = "ERROR"
    """least severe lines that Spark logs"""

    spark_log: Path = Path("data/spark_jobs/spark.log")
    """file for Spark's own output, which stays off the terminal"""


class StreamOptions(SparkOptions):
    """How a streaming query runs."""

    checkpoint: Path = Path("data/spark_jobs/checkpoint")
    """directory for the position of each query; a rerun continues from there"""

    once: bool = False
    """process what is there now, then end; without it, run until stopped"""

    partitions: PositiveInt = 2
    """partitions of topics that the job creates"""

    max_offsets_per_trigger: PositiveInt | None = None
    """maximum number of records per batch; no limit if not given"""

    on_data_loss: Literal["fail", "record"] = "fail"
    """when records went before they were read, by retention say: end, or tell and go on"""

    trigger_seconds: Annotated[float, Field(ge=0)] = 1.0
    """shortest time between batches, without --once"""

    metrics: Path | None = None
    """file to append a line of JSON to per batch: rates, lag by partition, watermark"""


class DefinitionOptions(StreamOptions):
    """Options of every job that knows what its records are."""

    topic: TopicName = "flights"
    """topic to read"""

    definition: str = "flights"
    """TOML file that defines the records, or the name of a built-in one"""

    set: dict[str, str] = {}
    """a parameter of the definition, e.g. delayed_from_minutes=30; may be repeated"""

    rejects_topic: TopicName | None = None
    """topic for records that break a rule; TOPIC.rejected if not given"""

    schema_registry: str | None = None
    """address of the schema registry, for records in Avro, e.g. http://localhost:8081"""

    schema_registry_client: dict[str, str] = {}
    """a setting of Confluent's client of the registry, e.g. ssl.ca.location=ca.pem"""

    def load_definition(self) -> Definition:
        """Read the definition; raise `BadOptionError` when it is not there or wrong."""
        source = None
        if self.schema_registry is not None:
            settings = tuple(self.schema_registry_client.items())
            source = SchemaSource(Registry(self.schema_registry, settings), self.topic)
        return load_definition(self.definition, self.set, source)

    def rejects(self) -> str:
        """Return the topic of rejected records."""
        return rejected_topic(self.topic, self.rejects_topic)


class TableOptions(DefinitionOptions):
    """Options of jobs that keep tables."""

    table: Path = Path("data/spark_jobs/tables")
    """directory for the tables, which driver and executors reach by this path"""

    format: TableFormat = TableFormat.DELTA
    """format of tables: delta or iceberg"""


def parse_options(
    model: type[OptionsT], argv: Sequence[str] | None, prog: str, doc: str | None
) -> OptionsT:
    """Read `argv` (the process's own when None), the environment and a file into `model`.

    `prog` is the job's name; its last word is that of the job's table in a file. `doc` is the
    docstring of the job's module, whose first line `--help` shows. Raises `BadOptionError` with
    one line that names the flag, variable or file, and the value; `--help` prints and exits, as
    `argparse` does.
    """
    description = (doc or "").partition("\n")[0]
    parser = OptionParser(prog=prog, description=description, allow_abbrev=False)
    for name, field in model.model_fields.items():
        _add_flag(parser, name, field)
    given = from_environment(model) | _from_flags(model, vars(parser.parse_args(argv)))
    file = given.get("options_file")
    if file is not None:
        given = from_file(model, Path(file.value), prog.rpartition(" ")[2]) | given
    try:
        return model.model_validate({name: value for name, (value, _) in given.items()})
    except ValidationError as error:
        raise BadOptionError(_first_line(error, given)) from error


def _from_flags(model: type[BaseModel], flags: dict[str, Any]) -> dict[str, Given]:
    given = {}
    for name, value in flags.items():
        if isinstance(value, list) and _is_mapping(model.model_fields[name]):
            pairs = dict(_key_and_value(name, text) for text in value)
            given[name] = Given(pairs, _flag(name))
        else:
            given[name] = Given(value, _flag(name))
    return given


class OptionParser(argparse.ArgumentParser):
    """A parser whose mistakes are `BadOptionError`, with the flag that was meant if one is near."""

    def error(self, message: str) -> NoReturn:
        """Raise the error; argparse would print the usage and exit."""
        unknown = [word.partition("=")[0] for word in message.split() if word.startswith("--")]
        is_unknown = message.startswith("unrecognized")
        hint = near(unknown[0], self._option_string_actions) if is_unknown and unknown else ""
        raise BadOptionError(f"{message}{hint} (see --help)")


def _add_flag(parser: argparse.ArgumentParser, name: str, field: FieldInfo) -> None:
    help_text = (field.description or "").replace("%", "%%")
    settings: dict[str, Any] = {"dest": name, "default": argparse.SUPPRESS}
    if field.annotation is bool:
        settings["action"] = argparse.BooleanOptionalAction
    elif _is_mapping(field):
        settings |= {"action": "append", "metavar": "KEY=VALUE"}
    else:
        settings["metavar"] = spelling(name).upper().rpartition("_")[2]
        if typing.get_origin(field.annotation) is tuple:
            settings["nargs"] = "+"
        if field.default not in (None, (), ""):
            several = isinstance(field.default, tuple)
            words = " ".join(map(str, field.default)) if several else field.default
            help_text += f" (default: {words})"
    parser.add_argument(_flag(name), help=help_text, **settings)


def _flag(name: str) -> str:
    return "--" + spelling(name).replace("_", "-")


def _is_mapping(field: FieldInfo) -> bool:
    return typing.get_origin(field.annotation) is dict


def _key_and_value(name: str, text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise BadOptionError(f"{_flag(name)}: expected KEY=VALUE, got '{text}'")
    return key, value


def _first_line(error: ValidationError, given: dict[str, Given]) -> str:
    first = error.errors()[0]
    message = str(first["msg"]).removeprefix("Value error, ")
    if not first["loc"]:
        return message
    name = str(first["loc"][0])
    place = given[name].place if name in given else _flag(name)
    return f"{place}: {message}, got '{first['input']}'"
