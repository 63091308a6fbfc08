"""What becomes of requests that change the registry: decided on its state, without I/O.

Each function returns an answer and the records that bring it about; none is needed for what is
there already. Whoever calls writes them before anybody else decides (`schema_topic`).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from spark_jobs.registry import registry_errors as errors
from spark_jobs.registry.compatibility import SCHEMA_TYPES, incompatibilities
from spark_jobs.registry.registry_errors import (
    RegistryError,
    subject_not_found,
    version_not_found,
)
from spark_jobs.registry.schema_records import (
    LogRecord,
    Reference,
    SchemaVersion,
    config_record,
    delete_subject_record,
    mode_record,
    schema_record,
    schema_tombstone,
)
from spark_jobs.registry.schema_types.schema_type import InvalidSchemaError, ParsedSchema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spark_jobs.registry.subjects import Subjects

AnswerT = TypeVar("AnswerT")
PARSED_KEPT = 1000
LATEST = "latest"
HIGHEST_VERSION = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Decision(Generic[AnswerT]):
    """An answer, true once the records are written."""

    answer: AnswerT
    records: tuple[LogRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A schema as a client sent it."""

    schema: str
    type: str = "AVRO"
    references: tuple[Reference, ...] = ()
    id: int | None = None
    version: int | None = None
    """Given by who copies another registry, in mode IMPORT."""

    normalize: bool = False


def register(state: Subjects, subject: str, candidate: Candidate) -> Decision[int]:
    """Return the id of a schema, which becomes the subject's next version unless it is one."""
    mode = state.mode(subject)
    if mode.startswith("READONLY"):
        raise _not_permitted(f"Subject {subject} is in read-only mode")
    parsed = parsed_candidate(state, subject, candidate)
    known = find(state, subject, candidate, parsed)
    if known is not None and candidate.id in {None, known.id}:
        return Decision(known.id)
    if mode == "IMPORT":
        return _imported(state, subject, candidate, parsed)
    if candidate.id is not None:
        raise _not_permitted(f"Subject {subject} is not in import mode")
    level = state.compatibility(subject)
    found = compared(state, level, candidate, parsed, state.of(subject))
    if found:
        words = "Schema being registered is incompatible with an earlier schema for subject"
        details = f'{words} "{subject}", details: {found}'
        raise RegistryError(errors.INCOMPATIBLE_SCHEMA, details)
    return _next_version(state, subject, candidate, parsed)


def _next_version(
    state: Subjects, subject: str, candidate: Candidate, parsed: ParsedSchema
) -> Decision[int]:
    every = state.of(subject, deleted=True)
    number = every[-1].version + 1 if every else 1
    if candidate.version not in {None, -1, number}:
        raise RegistryError(errors.INVALID_SCHEMA, f"Version is not {number}, the next one")
    text = _stored_text(state, subject, candidate, parsed)
    new = SchemaVersion(subject, number, 0, text, candidate.type, candidate.references)
    same = (v.id for v in state.all_versions(deleted=True) if v.content() == new.content())
    new = replace(new, id=next(same, state.highest_id + 1))
    return Decision(new.id, (schema_record(new),))


def _imported(
    state: Subjects, subject: str, candidate: Candidate, parsed: ParsedSchema
) -> Decision[int]:
    if candidate.id is None:
        raise _not_permitted(f"Subject {subject} is in import mode")
    new = SchemaVersion(
        subject,
        candidate.version or (max(state.versions.get(subject, {0: None})) + 1),
        candidate.id,
        _stored_text(state, subject, candidate, parsed),
        candidate.type,
        candidate.references,
    )
    if any(found.content() != new.content() for found in state.of_id(new.id)):
        raise _not_permitted(f"Overwrite new schema with id {new.id} is not permitted.")
    return Decision(new.id, (schema_record(new),))


def _stored_text(state: Subjects, subject: str, candidate: Candidate, parsed: ParsedSchema) -> str:
    is_normal = candidate.normalize or state.normalizes(subject)
    return parsed.normalised if is_normal else parsed.text


def parsed_candidate(state: Subjects, subject: str, candidate: Candidate) -> ParsedSchema:
    """Read a schema of a request, in its normal form where that is wanted."""
    texts = referred_texts(state, candidate)
    parsed = read_schema(candidate, texts)
    if candidate.normalize or state.normalizes(subject):
        return read_schema(replace(candidate, schema=parsed.normalised), texts)
    return parsed


def referred_texts(state: Subjects, candidate: Candidate) -> dict[str, str]:
    """Return the schemas that one refers to; refuse a reference that leads nowhere."""
    try:
        return state.referred_texts(candidate.references)
    except KeyError as error:
        words = f"Invalid schema: there is nothing at its reference {error.args[0]}"
        raise RegistryError(errors.INVALID_SCHEMA, words) from error


def read_schema(candidate: Candidate, texts: Mapping[str, str]) -> ParsedSchema:
    """Read a schema of a request; refuse what is none.

    `protoc` may need its time for it: callers do it once before they hold the state.
    """
    if not candidate.schema.strip():
        raise RegistryError(errors.INVALID_SCHEMA, "Empty schema")
    if candidate.type not in SCHEMA_TYPES:
        words = f"Invalid schema type {candidate.type}"
        raise RegistryError(errors.INVALID_SCHEMA, words)
    try:
        return _parsed(candidate.type, candidate.schema, tuple(texts.items()))
    except InvalidSchemaError as error:
        words = f"Invalid schema of type {candidate.type}, details: {error}"
        raise RegistryError(errors.INVALID_SCHEMA, words) from error


def parsed_version(state: Subjects, version: SchemaVersion) -> ParsedSchema:
    """Read a stored schema."""
    texts = state.referred_texts(version.references)
    return _parsed(version.type, version.schema, tuple(texts.items()))


@functools.lru_cache(maxsize=PARSED_KEPT)
def _parsed(kind: str, text: str, references: tuple[tuple[str, str], ...]) -> ParsedSchema:
    return SCHEMA_TYPES[kind].parse(text, dict(references))


def find(
    state: Subjects,
    subject: str,
    candidate: Candidate,
    parsed: ParsedSchema,
    *,
    deleted: bool = False,
) -> SchemaVersion | None:
    """Return the subject's latest version with this very schema."""
    for version in reversed(state.of(subject, deleted=deleted)):
        if (version.type, version.references) == (candidate.type, candidate.references):
            stored = parsed_version(state, version)
            if stored.identity == parsed.identity:
                return version
            if candidate.normalize and stored.normalised == parsed.normalised:
                return version
    return None


def compared(
    state: Subjects,
    level: str,
    candidate: Candidate,
    parsed: ParsedSchema,
    earlier: Sequence[SchemaVersion],
) -> list[str]:
    """Return what keeps a schema from being the next after `earlier`, oldest first."""
    typed = [(version.type, parsed_version(state, version)) for version in earlier]
    return incompatibilities(level, (candidate.type, parsed), typed)


def version_of(state: Subjects, subject: str, text: str, *, deleted: bool = False) -> SchemaVersion:
    """Return a subject's version by number or `latest`; refuse when it is not there."""
    number = version_number(text)
    if not state.of(subject, deleted=deleted):
        raise subject_not_found(subject)
    found = state.of(subject, deleted=deleted)
    if number is None:
        return found[-1]
    for version in found:
        if version.version == number:
            return version
    raise version_not_found(number)


def version_number(text: str) -> int | None:
    """Read the number of a version; None for the latest."""
    if text in {LATEST, "-1"}:
        return None
    if text.isascii() and text.isdigit() and 1 <= int(text[:11]) <= HIGHEST_VERSION:
        return int(text)
    words = (
        f"The specified version '{text}' is not a valid version id. "
        'Allowed values are between [1, 2^31-1] and the string "latest"'
    )
    raise RegistryError(errors.INVALID_VERSION, words)


def delete_subject(state: Subjects, subject: str, *, permanent: bool) -> Decision[list[int]]:
    """Delete a subject's versions, softly first, then for ever."""
    _require_writable(state, subject)
    every = state.of(subject, deleted=True)
    left = state.of(subject)
    if not every:
        raise subject_not_found(subject)
    if permanent and left:
        words = f"Subject '{subject}' was not deleted first before being permanently deleted"
        raise RegistryError(errors.SUBJECT_NOT_SOFT_DELETED, words)
    if not permanent and not left:
        words = f"Subject '{subject}' was soft deleted. Set permanent=true to delete permanently"
        raise RegistryError(errors.SUBJECT_SOFT_DELETED, words)
    chosen = every if permanent else left
    for version in chosen:
        _require_unreferenced(state, version)
    numbers = [version.version for version in chosen]
    if permanent:
        return Decision(numbers, tuple(schema_tombstone(version) for version in every))
    records = [delete_subject_record(subject, numbers[-1])]
    records += [config_record(subject, None)] if subject in state.configs else []
    records += [mode_record(subject, None)] if subject in state.modes else []
    return Decision(numbers, tuple(records))


def delete_version(state: Subjects, subject: str, text: str, *, permanent: bool) -> Decision[int]:
    """Delete one version of a subject, softly first, then for ever."""
    _require_writable(state, subject)
    version = version_of(state, subject, text, deleted=True)
    if version_number(text) is None and not permanent:
        version = version_of(state, subject, text)
    name = f"Subject '{subject}' Version {version.version}"
    if permanent and not version.deleted:
        words = f"{name} was not deleted first before being permanently deleted"
        raise RegistryError(errors.VERSION_NOT_SOFT_DELETED, words)
    if not permanent and version.deleted:
        words = f"{name} was soft deleted. Set permanent=true to delete permanently"
        raise RegistryError(errors.VERSION_SOFT_DELETED, words)
    _require_unreferenced(state, version)
    gone = schema_tombstone(version) if permanent else schema_record(replace(version, deleted=True))
    return Decision(version.version, (gone,))


def _require_unreferenced(state: Subjects, version: SchemaVersion) -> None:
    if state.referring_to(version.subject, version.version):
        words = f"One or more references exist to {version.subject}, version {version.version}"
        raise RegistryError(errors.REFERENCE_EXISTS, words)


def _require_writable(state: Subjects, subject: str) -> None:
    if state.mode(subject).startswith("READONLY"):
        raise _not_permitted(f"Subject {subject} is in read-only mode")


def _not_permitted(words: str) -> RegistryError:
    return RegistryError(errors.OPERATION_NOT_PERMITTED, words)
