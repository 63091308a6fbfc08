"""Message definitions inside Apache Kafka's jars, read into the shape that tests compare.

A definition is JSON with `//` comments. Structs are named where they are declared, or under
`commonStructs`; `layout` resolves both and lists what one version puts on the wire, in order.
"""

from __future__ import annotations

import functools
import json
import re
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from protocol.versions import NO_VERSIONS, Versions
from tests.support import jars

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VERSIONS = (jars.KAFKA_3, jars.KAFKA_4)
ARTIFACTS = (
    "kafka-clients",
    "kafka-group-coordinator",
    "kafka-transaction-coordinator",
    "kafka-share-coordinator",
    "kafka-metadata",
)
"""Jars that a release may have: 3.9.1 has no share coordinator."""

DIRECTORIES = ("common/message/", "common/metadata/")

_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ZEROS: dict[str, Any] = {
    "bool": False,
    "string": "",
    "bytes": b"",
    "records": None,
    "uuid": "zero uuid",
    "float64": 0.0,
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One field as one version has it. Members of a struct follow it, one level deeper."""

    depth: int
    name: str
    type: str
    is_nullable: bool
    tag: int | None
    default: Any


@dataclass(frozen=True, slots=True)
class Definition:
    """One JSON file of one jar."""

    source: str
    name: str
    kind: str
    api_key: int
    valid: Versions
    flexible: Versions
    body: dict[str, Any]

    def layout(self, version: int) -> list[Entry]:
        """Fields that `version` has, depth first, in wire order."""
        structs = {entry["name"]: entry["fields"] for entry in self.body.get("commonStructs", ())}
        return list(_entries(self.body["fields"], structs, version, 0))


def snake_case(name: str) -> str:
    """`IsrNodes` -> `isr_nodes`, `isKRaftController` -> `is_kraft_controller`."""
    return _WORD_START.sub("_", name.replace("KRaft", "Kraft")).lower()


@functools.cache
def definitions(kafka_version: str) -> dict[str, Definition]:
    """Every definition of the jars of `kafka_version`, by name."""
    found = {}
    for artifact in ARTIFACTS:
        path = jars.jar(kafka_version, artifact)
        if path.exists():
            found.update({entry.name: entry for entry in _definitions_of(path)})
    return found


def _definitions_of(path: Path) -> Iterator[Definition]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            if member.startswith(DIRECTORIES) and member.endswith(".json"):
                text = archive.read(member).decode("utf-8")
                yield _definition(path.name, json.loads(_COMMENT.sub("", text)))


def _definition(source: str, body: dict[str, Any]) -> Definition:
    return Definition(
        source=source,
        name=body["name"],
        kind=body["type"],
        api_key=body.get("apiKey", -1),
        valid=Versions.parse(body["validVersions"]),
        flexible=_versions(body, "flexibleVersions"),
        body=body,
    )


def _versions(body: dict[str, Any], key: str) -> Versions:
    return Versions.parse(body[key]) if key in body else NO_VERSIONS


def _entries(
    fields: list[dict[str, Any]], structs: dict[str, Any], version: int, depth: int
) -> Iterator[Entry]:
    for field in fields:
        if version not in _present(field):
            continue
        array = field["type"].startswith("[]")
        element = field["type"].removeprefix("[]")
        members = field.get("fields") or structs.get(element)
        is_tagged = version in _versions(field, "taggedVersions")
        yield Entry(
            depth=depth,
            name=snake_case(field["name"]),
            type=("[]" if array else "") + ("struct" if members is not None else element),
            is_nullable=version in _versions(field, "nullableVersions"),
            tag=int(field["tag"]) if is_tagged else None,
            default=_default(field, is_array=array, is_struct=members is not None),
        )
        if members is not None:
            yield from _entries(members, structs, version, depth + 1)


def _present(field: dict[str, Any]) -> Versions:
    """Versions that have the field; left out by some tagged fields, whose tag says it."""
    return Versions.parse(field.get("versions") or field["taggedVersions"])


def _default(field: dict[str, Any], *, is_array: bool, is_struct: bool) -> Any:
    text = field.get("default")
    if text == "null":
        return None
    if is_array:
        return []
    if is_struct:
        return "struct of defaults"
    if text is None:
        return _ZEROS.get(field["type"], 0)
    return _parsed(field["type"], text)


def _parsed(kind: str, text: Any) -> Any:
    if kind == "string":
        return text
    if kind == "bool":
        return str(text).lower() == "true"
    if kind == "float64":
        return float(text)
    return int(str(text), 0)
