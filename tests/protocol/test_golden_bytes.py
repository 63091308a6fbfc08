"""Our bytes are those of Kafka's own classes, for every message in every version, and back.

Cases: all defaults; every field filled, tagged ones too; and null in each field that may be null.
"""

from __future__ import annotations

from typing import Any

import pytest

from protocol.api_keys import ApiKey
from protocol.headers import parse_request_header
from tests.golden import declarations
from tests.golden.cases import INCOMPATIBLE, cases, versions_of
from tests.golden.definitions import VERSIONS, definitions
from tests.golden.java_bytes import Question, ask
from tests.support.broker_parts.response_headers import response_header
from tests.support.jars import KAFKA_3

pytestmark = pytest.mark.java

EVERY = [(version, name) for version in VERSIONS for name in sorted(declarations.messages())]


@pytest.mark.parametrize(("kafka_version", "name"), EVERY)
def test_bytes_are_those_of_kafkas_classes(kafka_version: str, name: str) -> None:
    for case in cases(kafka_version).get(name, ()):
        assert case.ours.encode(case.version).hex() == case.theirs.hex(), case.title


@pytest.mark.parametrize(("kafka_version", "name"), EVERY)
def test_bytes_of_kafkas_classes_are_read(kafka_version: str, name: str) -> None:
    for case in cases(kafka_version).get(name, ()):
        read = type(case.ours).decode(case.version, memoryview(case.theirs))
        assert read == case.ours, case.title


def test_every_message_of_each_release_has_cases() -> None:
    for version in VERSIONS:
        known = {name for name, entry in definitions(version).items() if versions_of(entry)}
        missing = (declarations.messages().keys() & known) - cases(version).keys()
        assert {(version, name) for name in missing} <= INCOMPATIBLE


@pytest.mark.parametrize("kafka_version", VERSIONS)
def test_headers_are_those_of_kafkas_classes(kafka_version: str) -> None:
    request = definitions(kafka_version)["RequestHeader"]
    response = definitions(kafka_version)["ResponseHeader"]
    written = ask(
        kafka_version,
        [
            Question(request, 1, request_header(ApiKey.FETCH, 11, "client é")),
            Question(request, 1, request_header(ApiKey.FETCH, 11, None)),
            Question(request, 2, request_header(ApiKey.FETCH, 12, "client é")),
            Question(request, 2, request_header(ApiKey.FETCH, 12, None)),
            Question(response, 0, {"correlationId": 77}),
            Question(response, 1, {"correlationId": 77}),
        ],
    )
    expected = [(11, "client é"), (11, None), (12, "client é"), (12, None)]
    for theirs, (api_version, client_id) in zip(written, expected, strict=False):
        header, position = parse_request_header(theirs)
        assert position == len(theirs)
        assert (header.api_key, header.api_version) == (ApiKey.FETCH, api_version)
        assert (header.correlation_id, header.client_id) == (77, client_id)
    assert response_header(77, ApiKey.FETCH, 11) == written[4]
    assert response_header(77, ApiKey.FETCH, 12) == written[5]


def test_header_of_controlled_shutdown_v0_is_that_of_kafkas_class() -> None:
    definition = definitions(KAFKA_3)["RequestHeader"]
    value = request_header(ApiKey.CONTROLLED_SHUTDOWN, 0, None)
    (theirs,) = ask(KAFKA_3, [Question(definition, 0, value)])
    header, position = parse_request_header(theirs)
    assert position == len(theirs)
    assert (header.api_key, header.api_version, header.correlation_id) == (7, 0, 77)


def request_header(api_key: ApiKey, api_version: int, client_id: str | None) -> dict[str, Any]:
    return {
        "requestApiKey": int(api_key),
        "requestApiVersion": api_version,
        "correlationId": 77,
        "clientId": client_id,
    }
