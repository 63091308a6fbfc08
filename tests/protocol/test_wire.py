"""Primitives of the wire format."""

from __future__ import annotations

from uuid import UUID

import pytest

from protocol import wire
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.uuids import ZERO_UUID
from protocol.wire import MAX_TAGS, DecodeError, encode_uvarint, intern_uuid, uvarint


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, b"\0"),
        (1, b"\1"),
        (127, b"\x7f"),
        (128, b"\x80\1"),
        (300, b"\xac\2"),
        (16383, b"\xff\x7f"),
        (16384, b"\x80\x80\1"),
        (2**31 - 1, b"\xff\xff\xff\xff\7"),
        (2**32 - 1, b"\xff\xff\xff\xff\x0f"),
    ],
)
def test_unsigned_varints_go_there_and_back(value: int, encoded: bytes) -> None:
    assert encode_uvarint(value) == encoded
    assert uvarint(b"x" + encoded + b"y", 1) == (value, 1 + len(encoded))


def test_a_varint_may_have_idle_bytes() -> None:
    assert uvarint(b"\x81\x80\x80\x80\0", 0) == (1, 5)


def test_a_varint_over_32_bits_is_refused() -> None:
    with pytest.raises(DecodeError, match="32 bits"):
        uvarint(b"\xff\xff\xff\xff\x10", 0)


def test_a_varint_over_5_bytes_is_refused() -> None:
    with pytest.raises(DecodeError, match="5 bytes"):
        uvarint(b"\x80\x80\x80\x80\x80\0", 0)


def test_a_varint_that_ends_too_early_runs_into_the_end() -> None:
    with pytest.raises(IndexError):
        uvarint(b"\xff\xff", 0)


def test_equal_bytes_give_the_same_uuid_object() -> None:
    raw = bytes(range(16))
    assert intern_uuid(raw) == UUID(bytes=raw)
    assert intern_uuid(raw) is intern_uuid(bytes(bytearray(raw)))
    assert intern_uuid(bytes(16)) == ZERO_UUID


def test_remembered_uuids_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "INTERNED_UUIDS_LIMIT", 10)
    monkeypatch.setattr(wire, "KNOWN_UUIDS", {})
    for number in range(100):
        intern_uuid(number.to_bytes(16, "big"))
        assert len(wire.KNOWN_UUIDS) <= 10


@pytest.mark.parametrize("version", [3, 4])
def test_more_tagged_fields_than_any_message_has_are_refused(version: int) -> None:
    """A frame of 100 MB may announce fifty million of two bytes each."""
    sections = encode_uvarint(MAX_TAGS + 1) + b"\x7f\x00" * (MAX_TAGS + 1)
    front = b"\x02c\x02v"
    with pytest.raises(DecodeError, match=f"{MAX_TAGS + 1} tagged fields"):
        ApiVersionsRequest.decode(version, front + sections)
    fewer = encode_uvarint(MAX_TAGS) + b"\x7f\x00" * MAX_TAGS
    assert ApiVersionsRequest.decode(version, front + fewer).client_software_name == "c"
