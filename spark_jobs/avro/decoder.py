"""A framed Avro value, read into the reader's schema and written as JSON; or why it cannot be.

JSON has fewer types: bytes are base64, decimals a text with all their digits, dates and times ISO
8601 with their offset, where they have one. `reader_schema` names these fields' types so.

A record that does not decode is told by its reason. A registry that does not answer is no such
reason: it raises, the batch fails, and comes again when the job does.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import io
import json
import struct
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import fastavro

from spark_jobs.avro.avro_values import NotAvroError

if TYPE_CHECKING:
    from collections.abc import Iterable

NOT_FRAMED, UNKNOWN_SCHEMA = "not-framed", "unknown-schema"
NOT_AVRO, NOT_THE_SCHEMA = "not-avro", "not-the-schema"

FRAME = struct.Struct(">bi")
MAGIC = 0

_BROKEN = (
    *(EOFError, LookupError, ValueError, TypeError, ArithmeticError, MemoryError, RecursionError),
    *(fastavro.read.SchemaResolutionError, struct.error, StopIteration),
)
"""What fastavro raises for bytes that are not those of the schema; it has no error of its own."""


class Schemas(Protocol):
    """The source of the writers' schemas."""

    def of_id(self, schema_id: int) -> Any:  # noqa: ANN401 - fastavro's own
        """Return a schema, None when there is none; raise `NotAvroError` for other types."""


class Decoded(NamedTuple):
    """A value as JSON text, or the reason and a detail why there is none."""

    text: str | None = None
    reason: str | None = None
    detail: str | None = None


class Decoder:
    """Decodes values of one topic; keeps the schemas of their writers, which never change."""

    def __init__(self, reader: Any, max_bytes: int, schemas: Schemas) -> None:  # noqa: ANN401
        self._reader = reader
        self._max_bytes = max_bytes
        self._schemas = schemas
        self._writers: dict[int, Any] = {}

    def decode(self, values: Iterable[bytes | None]) -> list[Decoded]:
        """Decode a batch; a registry is asked once in it for an id that it does not know."""
        unknown: dict[int, Decoded] = {}
        return [self._decoded(value, unknown) for value in values]

    def _decoded(self, value: bytes | None, unknown: dict[int, Decoded]) -> Decoded:
        if not value or len(value) > self._max_bytes:
            return Decoded()  # which the definition's own rules reject
        if len(value) < FRAME.size or value[0] != MAGIC:
            first = value[: FRAME.size].hex(" ")
            return Decoded(None, NOT_FRAMED, f"expected 00 and a schema's id, got {first}")
        schema_id = FRAME.unpack_from(value)[1]
        if schema_id in unknown:
            return unknown[schema_id]
        if schema_id not in self._writers:
            problem = self._look_up(schema_id)
            if problem is not None:
                unknown[schema_id] = problem
                return problem
        return self._read(value, schema_id)

    def _look_up(self, schema_id: int) -> Decoded | None:
        try:
            writer = self._schemas.of_id(schema_id)
        except NotAvroError as error:
            return Decoded(None, NOT_AVRO, f"schema {schema_id}: {error}")
        if writer is None:
            return Decoded(None, UNKNOWN_SCHEMA, f"the registry has no schema {schema_id}")
        self._writers[schema_id] = writer
        return None

    def _read(self, value: bytes, schema_id: int) -> Decoded:
        buffer = io.BytesIO(value)
        buffer.seek(FRAME.size)
        try:
            record = fastavro.schemaless_reader(buffer, self._writers[schema_id], self._reader)
            left = len(value) - buffer.tell()
            if left:
                return Decoded(None, NOT_THE_SCHEMA, f"schema {schema_id}: {left} bytes too many")
            return Decoded(_ENCODER.encode(record))
        except _BROKEN as error:
            words = str(error) or type(error).__name__
            is_short = isinstance(error, EOFError | IndexError)
            reason = "the bytes end too early" if is_short else words
            return Decoded(None, NOT_THE_SCHEMA, f"schema {schema_id}: {reason}")


def _plain(value: object) -> str:
    """Return as text what JSON has no type for."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return f"{value:f}"
    if isinstance(value, uuid.UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON")


_ENCODER = json.JSONEncoder(default=_plain, ensure_ascii=False, allow_nan=False)
