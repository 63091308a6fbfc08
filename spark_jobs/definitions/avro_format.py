"""`format = "avro"` of a record: its schema is that of a subject, and its fields are the schema's.

    [record]
    format = "avro"
    subject = "orders-value"     when not given, TOPIC-value
    event_time = "ordered"

Fields may be given all the same, for ranges and reasons; each is then a key of the record as
`avro.decoder` writes it, and keys beyond them are `unknown_keys`.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_jobs.avro.avro_values import AvroValues, NotAvroError, Registry
from spark_jobs.avro.reader_schema import fields_of
from spark_jobs.errors import BadOptionError

if TYPE_CHECKING:
    from pathlib import Path

AVRO = "avro"
MAX_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class SchemaSource:
    """Where the schema of a topic's records is."""

    registry: Registry
    topic: str


def with_schema(path: Path, record: dict[str, Any], source: SchemaSource | None) -> AvroValues:
    """Give a record the fields of its subject's latest schema, unless it has fields of its own.

    Return how its values are read. Raises `JobError` when the registry or the subject is not
    there. All definitions of a process have the schema that the first of them found.
    """
    if source is None:
        words = "a record in Avro needs --schema-registry http://HOST:PORT"
        raise BadOptionError(f"--definition: {path}: record.format: {words}")
    subject = record.get("subject", f"{source.topic}-value")
    reader = _latest(source.registry, subject)
    if "fields" not in record:
        try:
            record["fields"] = fields_of(json.loads(reader))
        except NotAvroError as error:
            raise BadOptionError(f"--definition: {path}: subject '{subject}': {error}") from error
    return AvroValues(source.registry, reader, record.get("max_bytes", MAX_BYTES))


@functools.cache
def _latest(registry: Registry, subject: str) -> str:
    """Return the schema that a job goes by to its end: what is newer counts from the next on."""
    from spark_jobs.avro.schema_client import SchemaClient  # noqa: PLC0415 - loads much

    with SchemaClient(registry) as schemas:
        return json.dumps(schemas.latest(subject))
