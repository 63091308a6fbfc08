"""Records of the topic `_schemas`, in Confluent's format: JSON keys and values.

    {"keytype":"SCHEMA","subject":"a-value","version":1,"magic":1}   a version; null deletes it
    {"keytype":"CONFIG","subject":null,"magic":0}                    compatibility, of one or all
    {"keytype":"MODE","subject":"a-value","magic":0}                 mode, of one subject or all
    {"keytype":"DELETE_SUBJECT","subject":"a-value","magic":0}       versions up to one are deleted

Keys are compared as bytes by compaction, so that they are written in this very form.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA, CONFIG, MODE, DELETE_SUBJECT = "SCHEMA", "CONFIG", "MODE", "DELETE_SUBJECT"
AVRO = "AVRO"
"""The type of a schema that names none."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Another subject's version, as a schema names it."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """A version of a subject."""

    subject: str
    version: int
    id: int
    schema: str
    type: str = AVRO
    references: tuple[Reference, ...] = ()
    deleted: bool = False

    def content(self) -> tuple[str, str, tuple[Reference, ...]]:
        """Return what schemas of one id have in common."""
        return self.type, self.schema, self.references


@dataclass(frozen=True, slots=True)
class Config:
    """Compatibility of a subject, or of all that have none of their own."""

    compatibility: str | None = None
    normalize: bool | None = None

    def document(self, key: str = "compatibilityLevel") -> dict[str, Any]:
        """Return it as JSON, without what is not set."""
        settings = {key: self.compatibility, "normalize": self.normalize}
        return {name: value for name, value in settings.items() if value is not None}


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A record to write: JSON as bytes, None as a tombstone."""

    key: bytes
    value: bytes | None


def schema_record(version: SchemaVersion) -> LogRecord:
    """Return the record of a version."""
    value = {
        "subject": version.subject,
        "version": version.version,
        "id": version.id,
        **type_and_references(version),
        "schema": version.schema,
        "deleted": version.deleted,
    }
    return LogRecord(_version_key(version), _json(value))


def schema_tombstone(version: SchemaVersion) -> LogRecord:
    """Return the record after which a version has never been."""
    return LogRecord(_version_key(version), None)


def config_record(subject: str | None, config: Config | None) -> LogRecord:
    """Return the record of a compatibility; None takes it away."""
    return LogRecord(_key(CONFIG, subject), None if config is None else _json(config.document()))


def mode_record(subject: str | None, mode: str | None) -> LogRecord:
    """Return the record of a mode; None takes it away."""
    return LogRecord(_key(MODE, subject), None if mode is None else _json({"mode": mode}))


def delete_subject_record(subject: str, version: int) -> LogRecord:
    """Return the record that soft-deletes a subject's versions up to one."""
    value = {"subject": subject, "version": version}
    return LogRecord(_key(DELETE_SUBJECT, subject), _json(value))


def type_and_references(version: SchemaVersion) -> dict[str, Any]:
    """Return the keys that stand in JSON only when there is something to say."""
    found: dict[str, Any] = {}
    if version.type != AVRO:
        found["schemaType"] = version.type
    if version.references:
        found["references"] = [
            {"name": r.name, "subject": r.subject, "version": r.version} for r in version.references
        ]
    return found


def answer_of(version: SchemaVersion) -> dict[str, Any]:
    """Return what clients read of a version."""
    head = {"subject": version.subject, "version": version.version, "id": version.id}
    return {**head, **type_and_references(version), "schema": version.schema}


def schema_version(value: Mapping[str, Any]) -> SchemaVersion:
    """Read the value of a version."""
    return SchemaVersion(
        subject=value["subject"],
        version=value["version"],
        id=value["id"],
        schema=value["schema"],
        type=value.get("schemaType") or AVRO,
        references=references(value.get("references")),
        deleted=bool(value.get("deleted")),
    )


def references(documents: list[Mapping[str, Any]] | None) -> tuple[Reference, ...]:
    """Read references; raises KeyError or TypeError for what is none."""
    return tuple(
        Reference(str(d["name"]), str(d["subject"]), int(d["version"])) for d in documents or ()
    )


def _version_key(version: SchemaVersion) -> bytes:
    key = {"keytype": SCHEMA, "subject": version.subject, "version": version.version, "magic": 1}
    return _json(key)


def _key(keytype: str, subject: str | None) -> bytes:
    return _json({"keytype": keytype, "subject": subject, "magic": 0})


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
