"""A schema registry as jobs see it, by Confluent's own client: in the driver and in executors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote, urlsplit

import fastavro
import httpx2
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError
from fastavro.schema import SchemaParseException, UnknownType

from spark_jobs.avro.avro_values import NotAvroError
from spark_jobs.errors import JobError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from confluent_kafka.schema_registry import RegisteredSchema, SchemaReference

    from spark_jobs.avro.avro_values import Registry

AVRO = "AVRO"
PATIENCE = {"timeout": 10, "max.retries": 5, "retries.wait.ms": 500, "retries.max.wait.ms": 5_000}
"""How long a registry may be away: about half a minute, then the batch fails and comes again."""

NOT_FOUND = 404


class SchemaClient:
    """Schemas of one registry; raises `JobError` when it does not answer."""

    def __init__(self, registry: Registry) -> None:
        parts = urlsplit(registry.url)
        given: dict[str, Any] = {"url": registry.shown(), **PATIENCE, **dict(registry.settings)}
        if parts.username is not None:
            secret = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            given["basic.auth.user.info"] = secret
        self._registry = registry
        try:
            self._client = SchemaRegistryClient(given)
        except (ValueError, OSError) as error:
            raise JobError(f"--schema-registry: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def latest(self, subject: str) -> Any:  # noqa: ANN401 - fastavro's own
        """Return the latest schema of a subject, with all it refers to, as fastavro has it."""
        try:
            found = self._client.get_latest_version(subject)
            return self._parsed(found.schema)
        except SchemaRegistryError as error:
            if error.http_status_code != NOT_FOUND:
                raise self._failure(error) from error
            words = f"--schema-registry: {self._registry.shown()} has no subject '{subject}'"
            raise JobError(words) from error
        except NotAvroError as error:
            raise JobError(f"--schema-registry: subject '{subject}': {error}") from error
        except httpx2.HTTPError as error:
            raise self._failure(error) from error

    def of_id(self, schema_id: int) -> Any:  # noqa: ANN401 - fastavro's own
        """Return a schema by its id, None when there is none; raise `NotAvroError` for others."""
        try:
            return self._parsed(self._client.get_schema(schema_id))
        except SchemaRegistryError as error:
            if error.http_status_code == NOT_FOUND:
                return None
            raise self._failure(error) from error
        except httpx2.HTTPError as error:
            raise self._failure(error) from error

    def _parsed(self, schema: Any) -> Any:  # noqa: ANN401 - the client's and fastavro's own
        kind = schema.schema_type or AVRO
        if kind != AVRO:
            raise NotAvroError(f"the schema is {kind}")
        try:
            named: dict[str, Any] = {}
            self._parse_references(schema.references or (), named)
            return fastavro.parse_schema(_document(schema.schema_str), named)
        except (SchemaParseException, UnknownType, ValueError, KeyError) as error:
            raise NotAvroError(f"the schema cannot be read: {error}") from error

    def _parse_references(
        self, references: Iterable[SchemaReference], named: dict[str, Any]
    ) -> None:
        for reference in references:
            found: RegisteredSchema = self._client.get_version(
                str(reference.subject), int(reference.version or 0), deleted=True
            )
            self._parse_references(found.schema.references or (), named)
            fastavro.parse_schema(_document(found.schema.schema_str or ""), named)

    def _failure(self, error: Exception) -> JobError:
        words = str(error).partition("\n")[0] or type(error).__name__
        return JobError(f"schema registry {self._registry.shown()} does not answer: {words}")


def _document(text: str) -> Any:  # noqa: ANN401 - JSON
    return json.loads(text) if text.lstrip()[:1] in {"{", "[", '"'} else text.strip()
