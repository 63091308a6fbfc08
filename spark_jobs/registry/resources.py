"""What each path of the REST interface does, by the state and the decisions on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_jobs.registry import registration, settings
from spark_jobs.registry import registry_errors as errors
from spark_jobs.registry.compatibility import SCHEMA_TYPES
from spark_jobs.registry.registration import Candidate, parsed_candidate, version_of
from spark_jobs.registry.registry_errors import RegistryError, subject_not_found
from spark_jobs.registry.schema_records import (
    AVRO,
    SchemaVersion,
    answer_of,
    references,
    type_and_references,
)
from spark_jobs.registry.schema_topic import SchemaTopic

if TYPE_CHECKING:
    from spark_jobs.registry.subjects import Subjects

HIGHEST_ID = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Asked:
    """A request without its HTTP."""

    path: Mapping[str, Any]
    query: Mapping[str, str]
    body: Mapping[str, Any]

    def is_set(self, name: str) -> bool:
        """Say whether a parameter of the query is `true`."""
        return self.query.get(name, "").lower() == "true"

    @property
    def subject(self) -> str:
        """The subject in the path."""
        return str(self.path["subject"])

    @property
    def subject_or_all(self) -> str | None:
        """The subject in the path; None where a setting is everybody's."""
        return self.path.get("subject")

    def candidate(self) -> Candidate:
        """Read the schema in the body."""
        unkept = [key for key in ("metadata", "ruleSet") if self.body.get(key)]
        if unkept:
            raise RegistryError(errors.INVALID_SCHEMA, f"'{unkept[0]}' of a schema is not kept")
        schema = self.body.get("schema")
        try:
            return Candidate(
                schema=schema if isinstance(schema, str) else "",
                type=str(self.body.get("schemaType") or AVRO),
                references=references(self.body.get("references")),
                id=_number(self.body.get("id")),
                version=_number(self.body.get("version")),
                normalize=self.is_set("normalize"),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            words = f"Invalid schema: {error!r} in what describes it"
            raise RegistryError(errors.INVALID_SCHEMA, words) from error


Resource = Callable[[SchemaTopic, Asked], Any]


def _number(value: object) -> int | None:
    number = None if value is None else int(str(value))
    return number if number is None or number > 0 else None


# ruff: noqa: D103 - the table at the end says what each is for


def subjects(topic: SchemaTopic, asked: Asked) -> list[str]:
    prefix = asked.query.get("subjectPrefix", "").removeprefix(":*:")
    only_deleted = asked.is_set("deletedOnly")
    deleted = only_deleted or asked.is_set("deleted")

    def look(state: Subjects) -> list[str]:
        return [
            subject
            for subject in sorted(state.versions)
            if subject.startswith(prefix)
            and state.of(subject, deleted=deleted)
            and not (only_deleted and state.of(subject))
        ]

    return _page(topic.read(look), asked)


def versions(topic: SchemaTopic, asked: Asked) -> list[int]:
    def look(state: Subjects) -> list[int]:
        found = state.of(asked.subject, deleted=asked.is_set("deleted"))
        if not found:
            raise subject_not_found(asked.subject)
        return [version.version for version in found]

    return _page(topic.read(look), asked)


def _page(found: list[Any], asked: Asked) -> list[Any]:
    try:
        first = max(0, int(asked.query.get("offset") or 0))
        limit = int(asked.query.get("limit") or -1)
    except ValueError as error:
        raise RegistryError(errors.BAD_REQUEST, f"offset and limit: {error}") from error
    return found[first:] if limit < 0 else found[first : first + limit]


def version(topic: SchemaTopic, asked: Asked) -> dict[str, Any]:
    return answer_of(_version(topic, asked))


def version_text(topic: SchemaTopic, asked: Asked) -> bytes:
    return _version(topic, asked).schema.encode()


def _version(topic: SchemaTopic, asked: Asked) -> SchemaVersion:
    deleted = asked.is_set("deleted")
    return topic.read(
        lambda state: version_of(state, asked.subject, asked.path["version"], deleted=deleted)
    )


def referenced_by(topic: SchemaTopic, asked: Asked) -> list[int]:
    def look(state: Subjects) -> list[int]:
        found = version_of(state, asked.subject, asked.path["version"])
        return sorted({v.id for v in state.referring_to(found.subject, found.version)})

    return topic.read(look)


def register(topic: SchemaTopic, asked: Asked) -> dict[str, Any]:
    candidate = _candidate(topic, asked)
    if candidate.id is None:
        known = topic.read(lambda state: _known(state, asked.subject, candidate))
        if known is not None:
            return {"id": known.id}
    return {"id": topic.change(lambda s: registration.register(s, asked.subject, candidate))}


def _candidate(topic: SchemaTopic, asked: Asked) -> Candidate:
    """Return the schema of a request, read once while nobody waits for the state."""
    candidate = asked.candidate()
    texts = topic.read(lambda state: registration.referred_texts(state, candidate))
    registration.read_schema(candidate, texts)
    return candidate


def _known(state: Subjects, subject: str, candidate: Candidate) -> SchemaVersion | None:
    parsed = parsed_candidate(state, subject, candidate)
    return registration.find(state, subject, candidate, parsed)


def look_up(topic: SchemaTopic, asked: Asked) -> dict[str, Any]:
    candidate, deleted = _candidate(topic, asked), asked.is_set("deleted")

    def look(state: Subjects) -> SchemaVersion:
        if not state.of(asked.subject, deleted=deleted):
            raise subject_not_found(asked.subject)
        parsed = parsed_candidate(state, asked.subject, candidate)
        found = registration.find(state, asked.subject, candidate, parsed, deleted=deleted)
        if found is None:
            raise RegistryError(errors.SCHEMA_NOT_FOUND, "Schema not found")
        return found

    return answer_of(topic.read(look))


def delete_subject(topic: SchemaTopic, asked: Asked) -> list[int]:
    permanent = asked.is_set("permanent")
    return topic.change(
        lambda state: registration.delete_subject(state, asked.subject, permanent=permanent)
    )


def delete_version(topic: SchemaTopic, asked: Asked) -> int:
    number, permanent = asked.path["version"], asked.is_set("permanent")
    return topic.change(
        lambda state: registration.delete_version(state, asked.subject, number, permanent=permanent)
    )


def schemas(topic: SchemaTopic, asked: Asked) -> list[dict[str, Any]]:
    prefix = asked.query.get("subjectPrefix", "")
    deleted, latest = asked.is_set("deleted"), asked.is_set("latestOnly")

    def look(state: Subjects) -> list[dict[str, Any]]:
        found = [v for v in state.all_versions(deleted=deleted) if v.subject.startswith(prefix)]
        if latest:
            found = list({v.subject: v for v in found}.values())
        return [answer_of(v) for v in found]

    return _page(topic.read(look), asked)


def schema(topic: SchemaTopic, asked: Asked) -> dict[str, Any]:
    found, text, highest = _schema(topic, asked)
    answer = {**type_and_references(found), "schema": text}
    return answer | ({"maxId": highest} if asked.is_set("fetchMaxId") else {})


def schema_text(topic: SchemaTopic, asked: Asked) -> bytes:
    return _schema(topic, asked)[1].encode()


def _schema(topic: SchemaTopic, asked: Asked) -> tuple[SchemaVersion, str, int]:
    serialised = asked.query.get("format") == "serialized"

    def look(state: Subjects) -> tuple[SchemaVersion, str, int]:
        found = _of_id(state, asked)[0]
        text = found.schema
        if serialised and found.type == "PROTOBUF":
            text = registration.parsed_version(state, found).identity
        return found, text, state.highest_id

    return topic.read(look)


def _of_id(state: Subjects, asked: Asked) -> list[SchemaVersion]:
    text = str(asked.path["id"])
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(HIGHEST_ID))
    found = state.of_id(int(text)) if is_number else []
    if not found:
        raise RegistryError(errors.SCHEMA_NOT_FOUND, f"Schema {text} not found")
    return found


def subjects_of_id(topic: SchemaTopic, asked: Asked) -> list[str]:
    return sorted({found["subject"] for found in versions_of_id(topic, asked)})


def versions_of_id(topic: SchemaTopic, asked: Asked) -> list[dict[str, Any]]:
    deleted = asked.is_set("deleted")
    found = topic.read(lambda state: _of_id(state, asked))
    return [{"subject": v.subject, "version": v.version} for v in found if deleted or not v.deleted]


def types(topic: SchemaTopic, asked: Asked) -> list[str]:  # noqa: ARG001
    return list(SCHEMA_TYPES)


def compatible_with_version(topic: SchemaTopic, asked: Asked) -> dict[str, Any]:
    number = registration.version_number(asked.path["version"])
    candidate = _candidate(topic, asked)

    def look(state: Subjects) -> list[str]:
        earlier = state.of(asked.subject)
        if number is not None or earlier:
            earlier = [version_of(state, asked.subject, asked.path["version"])]
        return _compared(state, asked.subject, candidate, earlier)

    return _compatibility(topic.read(look), asked)


def compatible_with_all(topic: SchemaTopic, asked: Asked) -> dict[str, Any]:
    candidate = _candidate(topic, asked)

    def look(state: Subjects) -> list[str]:
        return _compared(state, asked.subject, candidate, state.of(asked.subject))

    return _compatibility(topic.read(look), asked)


def _compared(
    state: Subjects, subject: str, candidate: Candidate, earlier: list[SchemaVersion]
) -> list[str]:
    parsed = parsed_candidate(state, subject, candidate)
    level = state.compatibility(subject)
    return registration.compared(state, level, candidate, parsed, earlier)


def _compatibility(found: list[str], asked: Asked) -> dict[str, Any]:
    answer: dict[str, Any] = {"is_compatible": not found}
    return answer | ({"messages": found} if asked.is_set("verbose") else {})


def config(topic: SchemaTopic, asked: Asked) -> dict[str, Any]:
    default = asked.is_set("defaultToGlobal")
    return topic.read(
        lambda s: settings.config_of(s, asked.subject_or_all, default_to_global=default)
    )


def set_config(topic: SchemaTopic, asked: Asked) -> dict[str, Any]:
    return topic.change(lambda s: settings.set_config(s, asked.subject_or_all, asked.body))


def delete_config(topic: SchemaTopic, asked: Asked) -> dict[str, Any]:
    return topic.change(lambda s: settings.delete_config(s, asked.subject_or_all))


def mode(topic: SchemaTopic, asked: Asked) -> dict[str, Any]:
    default = asked.is_set("defaultToGlobal")
    return topic.read(
        lambda s: settings.mode_of(s, asked.subject_or_all, default_to_global=default)
    )


def set_mode(topic: SchemaTopic, asked: Asked) -> dict[str, Any]:
    force = asked.is_set("force")
    return topic.change(
        lambda s: settings.set_mode(s, asked.subject_or_all, asked.body, force=force)
    )


def delete_mode(topic: SchemaTopic, asked: Asked) -> dict[str, Any]:
    return topic.change(lambda s: settings.delete_mode(s, asked.subject_or_all))


def nothing(topic: SchemaTopic, asked: Asked) -> dict[str, Any]:  # noqa: ARG001
    return {}


def contexts(topic: SchemaTopic, asked: Asked) -> list[str]:  # noqa: ARG001
    return ["."]


_SUBJECT = "/subjects/{subject:path}"
_VERSION = _SUBJECT + "/versions/{version}"
_COMPATIBILITY = "/compatibility/subjects/{subject:path}/versions"

RESOURCES: tuple[tuple[str, str, Resource], ...] = (
    ("GET", "/", nothing),
    ("GET", "/contexts", contexts),
    ("GET", "/schemas", schemas),
    ("GET", "/schemas/types", types),
    ("GET", "/schemas/ids/{id}", schema),
    ("GET", "/schemas/ids/{id}/schema", schema_text),
    ("GET", "/schemas/ids/{id}/subjects", subjects_of_id),
    ("GET", "/schemas/ids/{id}/versions", versions_of_id),
    ("GET", "/subjects", subjects),
    ("GET", _VERSION + "/schema", version_text),
    ("GET", _VERSION + "/referencedby", referenced_by),
    ("GET", _VERSION, version),
    ("DELETE", _VERSION, delete_version),
    ("GET", _SUBJECT + "/versions", versions),
    ("POST", _SUBJECT + "/versions", register),
    ("POST", _SUBJECT, look_up),
    ("DELETE", _SUBJECT, delete_subject),
    ("POST", _COMPATIBILITY + "/{version}", compatible_with_version),
    ("POST", _COMPATIBILITY, compatible_with_all),
    ("GET", "/config", config),
    ("PUT", "/config", set_config),
    ("DELETE", "/config", delete_config),
    ("GET", "/config/{subject:path}", config),
    ("PUT", "/config/{subject:path}", set_config),
    ("DELETE", "/config/{subject:path}", delete_config),
    ("GET", "/mode", mode),
    ("PUT", "/mode", set_mode),
    ("DELETE", "/mode", delete_mode),
    ("GET", "/mode/{subject:path}", mode),
    ("PUT", "/mode/{subject:path}", set_mode),
    ("DELETE", "/mode/{subject:path}", delete_mode),
)
"""Method, path and what it does; of two that match a path, the first."""
