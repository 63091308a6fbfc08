"""Request and response headers, byte by byte."""

from __future__ import annotations

import struct

import pytest

from protocol import headers
from protocol.api_keys import ApiKey
from protocol.headers import (
    UnknownApiKeyError,
    parse_request_header,
)
from protocol.schema import Request
from protocol.wire import DecodeError
from tests.golden import declarations
from tests.support.broker_parts.response_headers import response_front, response_header


def fixed(api_key: int, version: int, correlation_id: int = 7) -> bytes:
    return struct.pack(">hhi", api_key, version, correlation_id)


def shown(frame: bytes) -> tuple[int, int, int, str | None, int]:
    header, position = parse_request_header(memoryview(frame))
    return (
        header.api_key,
        header.api_version,
        header.correlation_id,
        header.client_id,
        position,
    )


def test_header_v1_ends_after_the_client_id() -> None:
    assert shown(fixed(0, 8) + b"\0\2ab" + b"body") == (0, 8, 7, "ab", 12)


def test_header_v1_may_be_the_whole_frame() -> None:
    assert shown(fixed(0, 8) + b"\0\2ab") == (0, 8, 7, "ab", 12)


def test_header_v2_ends_after_the_tags() -> None:
    assert shown(fixed(0, 9) + b"\0\2ab\0" + b"body") == (0, 9, 7, "ab", 13)


def test_header_v2_skips_tagged_fields() -> None:
    tags = b"\2" + b"\0\1x" + b"\xff\1\2yz"
    assert shown(fixed(0, 9) + b"\0\2ab" + tags + b"body") == (0, 9, 7, "ab", 21)


def test_client_id_may_be_null_or_empty() -> None:
    assert shown(fixed(0, 8) + b"\xff\xff") == (0, 8, 7, None, 10)
    assert shown(fixed(0, 9) + b"\xff\xff\0") == (0, 9, 7, None, 11)
    assert shown(fixed(0, 9) + b"\0\0\0") == (0, 9, 7, "", 11)


def test_controlled_shutdown_v0_has_no_client_id() -> None:
    assert shown(fixed(7, 0) + b"\0\0\0\1") == (7, 0, 7, None, 8)
    assert shown(fixed(7, 0)) == (7, 0, 7, None, 8)
    assert shown(fixed(7, 1) + b"\0\1c") == (7, 1, 7, "c", 11)


def test_api_versions_of_an_unheard_of_version_is_read() -> None:
    assert shown(fixed(18, 99) + b"\0\1c\0") == (18, 99, 7, "c", 12)


@pytest.mark.parametrize("api_key", [-1, 52, 58, 95, 32767])
def test_unknown_key_is_named(api_key: int) -> None:
    with pytest.raises(UnknownApiKeyError) as caught:
        parse_request_header(fixed(api_key, 3) + b"\0\1c\0")
    assert (caught.value.api_key, caught.value.api_version) == (api_key, 3)
    assert caught.value.correlation_id == 7


def test_every_truncation_is_refused() -> None:
    frame = fixed(0, 9) + b"\0\2ab" + b"\2" + b"\0\1x" + b"\xff\1\2yz"
    for size in range(len(frame)):
        with pytest.raises(DecodeError):
            parse_request_header(frame[:size])


@pytest.mark.parametrize("tail", [b"\xff\xfe", b"\x80\0", b"\x7f\xffab", b"\0\3ab"])
def test_damaged_client_id_is_refused(tail: bytes) -> None:
    with pytest.raises(DecodeError):
        parse_request_header(fixed(0, 8) + tail)


@pytest.mark.parametrize("tags", [b"\x01\0\x05abc", b"\xff\xff\xff\xff\x7f", b"\xff" * 6, b"\x05"])
def test_damaged_tags_are_refused(tags: bytes) -> None:
    with pytest.raises(DecodeError):
        parse_request_header(fixed(0, 9) + b"\0\2ab" + tags)


def test_response_header_is_tagged_in_flexible_versions() -> None:
    assert response_header(7, ApiKey.PRODUCE, 8) == b"\0\0\0\7"
    assert response_header(7, ApiKey.PRODUCE, 9) == b"\0\0\0\7\0"
    assert response_front(7, ApiKey.PRODUCE, 8, 100) == b"\0\0\0\x68\0\0\0\7"
    assert response_front(7, ApiKey.PRODUCE, 9, 100) == b"\0\0\0\x69\0\0\0\7\0"
    assert response_header(-1, ApiKey.SASL_HANDSHAKE, 1) == b"\xff\xff\xff\xff"


def test_response_to_api_versions_is_never_tagged() -> None:
    assert response_header(7, ApiKey.API_VERSIONS, 4) == b"\0\0\0\7"


def test_table_of_flexible_versions_is_that_of_the_messages() -> None:
    every = declarations.messages().values()
    declared = {int(message.API_KEY): message for message in every if issubclass(message, Request)}
    assert sorted(headers._FLEXIBLE_REQUEST) == sorted(declared)
    for api_key, request in declared.items():
        for version in range(request.VERSIONS.first, request.VERSIONS.last + 1):
            flexible = version >= headers._FLEXIBLE_REQUEST[api_key]
            assert flexible == (version in request.FLEXIBLE)
            assert flexible == (version in request.RESPONSE.FLEXIBLE)
