"""Our declarations are those of Apache Kafka 3.9.1 and 4.4.0, by field and by version.

The truth is the message JSON inside the published jars; bytes are compared in `test_golden_bytes`.
Where both releases have a (message, version), 4.4.0 counts, and what 3.9.1 lacked is listed in
`tests.golden.cases`, so that a change that we do not know of fails here.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from protocol.api_keys import ApiKey
from protocol.metadata_log.frames import RECORD_TYPES
from protocol.schema import Coded, Request, Response
from tests.golden import declarations
from tests.golden.cases import (
    ADDED_WITHOUT_A_NEW_VERSION,
    RENAMED,
    version_in_json,
    versions_of,
)
from tests.golden.definitions import Definition, definitions
from tests.support.jars import KAFKA_3, KAFKA_4

pytestmark = pytest.mark.java

KEYS = {*range(52), 55, 56, 57, 59, 60, 61, *range(64, 70), 71, 72, *range(74, 82), *range(83, 95)}
"""Requests that we send or serve; the others are KRaft's own."""

CONSUMER_PROTOCOL = {"ConsumerProtocolSubscription", "ConsumerProtocolAssignment"}

RAFT_CONTROL_RECORDS = {
    "KRaftVersionRecord",
    "LeaderChangeMessage",
    "SnapshotFooterRecord",
    "SnapshotHeaderRecord",
    "VotersRecord",
}

SUPERSEDED = {
    "ListClientMetricsResourcesRequest": "ListConfigResourcesRequest",
    "ListClientMetricsResourcesResponse": "ListConfigResourcesResponse",
}
"""Messages of 3.9.1 that 4.4.0 made version 0 of something wider, with the same bytes."""


def is_expected(definition: Definition) -> bool:
    if definition.name in SUPERSEDED:
        return False
    if definition.kind in {"request", "response"}:
        return definition.api_key in KEYS
    data = CONSUMER_PROTOCOL | RAFT_CONTROL_RECORDS
    return (
        definition.name in data or re.search("coordinator|metadata", definition.source) is not None
    )


def expected(kafka_version: str) -> dict[str, Definition]:
    found = definitions(kafka_version)
    return {name: entry for name, entry in found.items() if is_expected(entry)}


def test_exactly_the_messages_of_both_releases_are_declared() -> None:
    wanted = expected(KAFKA_3).keys() | expected(KAFKA_4).keys()
    assert declarations.messages().keys() == wanted


def test_every_served_key_has_a_request_and_a_response() -> None:
    every = declarations.messages().values()
    declared = {int(message.API_KEY): message for message in every if issubclass(message, Request)}
    assert declared.keys() == KEYS
    assert {int(key) for key in ApiKey} > KEYS
    responses = {message for message in every if issubclass(message, Response)}
    assert {request.RESPONSE for request in declared.values()} == responses


@pytest.mark.parametrize("kafka_version", [KAFKA_3, KAFKA_4])
def test_api_keys_have_kafkas_names(kafka_version: str) -> None:
    for definition in definitions(kafka_version).values():
        if definition.kind == "request" and definition.name not in SUPERSEDED:
            name = definition.name.removesuffix("Request")
            assert ApiKey(definition.api_key).name.replace("_", "") == name.upper()
            if definition.api_key in KEYS:
                message = declarations.messages()[definition.name]
                assert issubclass(message, Request)
                assert definition.api_key == message.API_KEY


@pytest.mark.parametrize("name", sorted(declarations.messages()))
def test_versions_are_those_of_both_releases(name: str) -> None:
    message = declarations.messages()[name]
    found = [entry[name] for entry in (expected(KAFKA_3), expected(KAFKA_4)) if name in entry]
    valid = {version for definition in found for version in versions_of(definition)}
    assert valid == set(range(message.VERSIONS.first, message.VERSIONS.last + 1))
    for definition in found:
        for version in versions_of(definition):
            assert (version in definition.flexible) == (version in message.FLEXIBLE), version


@pytest.mark.parametrize("name", sorted(declarations.messages()))
def test_fields_are_kafkas(name: str) -> None:
    message = declarations.messages()[name]
    for version in range(message.VERSIONS.first, message.VERSIONS.last + 1):
        definition = expected(KAFKA_4).get(name)
        if definition is None or version not in versions_of(definition):
            definition = expected(KAFKA_3)[name]
        layout = definition.layout(version_in_json(definition, version))
        assert declarations.layout(message, version) == layout, version


@pytest.mark.parametrize("name", sorted(declarations.messages()))
def test_fields_were_the_same_before_but_for_the_known_additions(name: str) -> None:
    definition = expected(KAFKA_3).get(name)
    for version in versions_of(definition) if definition else ():
        assert definition is not None
        added = ADDED_WITHOUT_A_NEW_VERSION.get((name, version), frozenset())
        entries = declarations.layout(declarations.messages()[name], version)
        kept = [
            replace(entry, name=RENAMED.get((name, entry.name), entry.name))
            for entry in entries
            if entry.name not in added
        ]
        assert kept == definition.layout(version_in_json(definition, version)), version
        assert {entry.name for entry in entries} >= added


@pytest.mark.parametrize("kafka_version", [KAFKA_3, KAFKA_4])
def test_superseded_messages_have_the_layout_of_their_successors(kafka_version: str) -> None:
    for old, new in SUPERSEDED.items():
        definition = definitions(kafka_version).get(old)
        if definition is not None:
            was = [(entry.depth, entry.type, entry.tag) for entry in definition.layout(0)]
            layout = declarations.layout(declarations.messages()[new], 0)
            assert was == [(entry.depth, entry.type, entry.tag) for entry in layout]


def test_key_types_are_kafkas() -> None:
    for name, definition in (expected(KAFKA_3) | expected(KAFKA_4)).items():
        if name.endswith("Key"):
            message = declarations.messages()[name]
            assert issubclass(message, Coded)
            is_named = definition.kind == "coordinator-key"
            key_type = definition.api_key if is_named else definition.valid.last
            assert key_type == message.KEY_TYPE, name


def test_record_types_are_kafkas() -> None:
    wanted = {
        definition.api_key: name
        for name, definition in (expected(KAFKA_3) | expected(KAFKA_4)).items()
        if definition.kind == "metadata"
    }
    assert {number: record.__name__ for number, record in RECORD_TYPES.items()} == wanted
