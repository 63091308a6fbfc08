"""The state of a registry, rebuilt by replaying the records of its topic; no I/O."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from spark_jobs.registry.schema_records import (
    CONFIG,
    DELETE_SUBJECT,
    MODE,
    SCHEMA,
    Config,
    Reference,
    SchemaVersion,
    schema_version,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

DEFAULT_COMPATIBILITY = "BACKWARD"
DEFAULT_MODE = "READWRITE"


@dataclass(slots=True)
class Subjects:
    """All subjects with their versions, and how each may change."""

    versions: dict[str, dict[int, SchemaVersion]] = field(default_factory=dict)
    """By subject and version, in ascending order, those that are soft-deleted included."""

    configs: dict[str | None, Config] = field(default_factory=dict)
    """By subject; under None what holds for those without."""

    modes: dict[str | None, str] = field(default_factory=dict)
    highest_id: int = 0
    """The highest id there has been: none is given twice."""

    def replay(self, key: bytes | None, value: bytes | None) -> None:
        """Take in a record of the topic; what is not the registry's own is passed over."""
        try:
            place = json.loads(key or b"null")
            content = None if value is None else json.loads(value)
            self._replay(place["keytype"], place, content)
        except (ValueError, KeyError, TypeError):
            return

    def _replay(self, keytype: str, place: dict[str, Any], content: Any) -> None:  # noqa: ANN401
        subject = place.get("subject")
        if keytype == SCHEMA:
            self._replay_schema(place["subject"], place["version"], content)
        elif keytype == CONFIG:
            _set(self.configs, subject, content and _config(content))
        elif keytype == MODE:
            _set(self.modes, subject, content and content["mode"])
        elif keytype == DELETE_SUBJECT and content is not None:
            for found in list(self.versions.get(place["subject"], {}).values()):
                if found.version <= content["version"]:
                    self._put(replace(found, deleted=True))

    def _replay_schema(self, subject: str, version: int, content: Any) -> None:  # noqa: ANN401
        if content is not None:
            self._put(schema_version(content))
            return
        found = self.versions.get(subject, {})
        found.pop(version, None)
        if not found:
            self.versions.pop(subject, None)

    def _put(self, version: SchemaVersion) -> None:
        found = {**self.versions.get(version.subject, {}), version.version: version}
        self.versions[version.subject] = dict(sorted(found.items()))
        self.highest_id = max(self.highest_id, version.id)

    def all_versions(self, *, deleted: bool = False) -> Iterator[SchemaVersion]:
        """Yield the versions of all subjects in their order, the deleted ones on request."""
        for subject in sorted(self.versions):
            yield from self.of(subject, deleted=deleted)

    def of(self, subject: str, *, deleted: bool = False) -> list[SchemaVersion]:
        """Return a subject's versions, the deleted ones on request; none if it is not there."""
        found = self.versions.get(subject, {}).values()
        return [version for version in found if deleted or not version.deleted]

    def of_id(self, schema_id: int) -> list[SchemaVersion]:
        """Return all versions with an id: those of a deleted one too, since data remembers it."""
        found = self.all_versions(deleted=True)
        return [version for version in found if version.id == schema_id]

    def referring_to(self, subject: str, version: int) -> list[SchemaVersion]:
        """Return the versions that refer to one."""
        return [
            found
            for found in self.all_versions()
            if any((r.subject, r.version) == (subject, version) for r in found.references)
        ]

    def referred_texts(self, references: tuple[Reference, ...]) -> dict[str, str]:
        """Return the schemas referred to, by name, dependencies first.

        Raises KeyError with the reference that leads nowhere.
        """
        texts: dict[str, str] = {}
        for reference in references:
            found = self.versions.get(reference.subject, {}).get(reference.version)
            if found is None or found.deleted:
                raise KeyError(reference)
            texts |= self.referred_texts(found.references) | {reference.name: found.schema}
        return texts

    def compatibility(self, subject: str) -> str:
        """Return the level that holds for a subject."""
        for key in (subject, None):
            level = self.configs.get(key, Config()).compatibility
            if level is not None:
                return level
        return DEFAULT_COMPATIBILITY

    def normalizes(self, subject: str) -> bool:
        """Say whether schemas of a subject are normalised without being asked."""
        for key in (subject, None):
            normalize = self.configs.get(key, Config()).normalize
            if normalize is not None:
                return normalize
        return False

    def mode(self, subject: str) -> str:
        """Return the mode that holds for a subject."""
        return self.modes.get(subject) or self.modes.get(None) or DEFAULT_MODE


def _config(content: dict[str, Any]) -> Config:
    return Config(content.get("compatibilityLevel"), content.get("normalize"))


def _set(settings: dict[str | None, Any], subject: str | None, value: object) -> None:
    settings.pop(subject, None)
    if value is not None:
        settings[subject] = value
