"""Strings whose bytes are not UTF-8: what they are read as, in every field of every message."""

from __future__ import annotations

import itertools
import struct
from typing import TYPE_CHECKING, Any

import pytest

from protocol.fields import Field, Kind
from protocol.headers import parse_request_header
from protocol.messages.group_membership import HeartbeatRequest
from protocol.records.record import _headers
from protocol.schema import Request
from protocol.wire import DecodeError, joined_pairs, text_of, unpaired_replaced
from tests.golden import java_text
from tests.golden.values import Filling
from tests.protocol.strategies import every_version
from tests.protocol.test_round_trip import read_in_steps

if TYPE_CHECKING:
    from protocol.schema import Message, Struct

REPLACED = "\ufffd"
SURROGATE = b"\xed\xa0\x80"
"""As long as U+FFFD, which it is read as: a message stays whole when one becomes the other."""

BYTES = bytes.fromhex("41 80 8f 90 a0 bf c1 c2 e0 e1 ed ef f0 f1 f4 f5 ff")
"""One of each kind that a decoder of UTF-8 tells apart."""

READ_AS = {
    b"Z\xfcrich": "Z?rich",
    SURROGATE: "?",
    b"\xed\xa0": "?",
    b"\xed\xa0A": "?A",
    b"\xed\xa0\xed\xb0\x80": "??",
    b"\xc0\x80": "??",
    b"\xe0\x80\x80": "???",
    b"\xf4\x90\x80\x80": "????",
    b"\xf0\x9f\x98": "?",
    b"\xf0\x9f\x98A": "?A",
    b"\xe2\x82": "?",
    "grüße 😀".encode(): "grüße 😀",
    b"": "",
}


@pytest.mark.parametrize("content", READ_AS)
def test_each_sequence_that_is_no_utf_8_is_one_replacement_character(content: bytes) -> None:
    assert text_of(content) == READ_AS[content].replace("?", REPLACED)


@pytest.mark.java
def test_text_is_what_apache_kafka_reads() -> None:
    contents = [
        bytes(drawn) for size in (1, 2, 3, 4) for drawn in itertools.product(BYTES, repeat=size)
    ]
    theirs = java_text.ask(contents)
    different = [
        (content.hex(), text_of(content), text)
        for content, text in zip(contents, theirs, strict=True)
        if text_of(content) != text
    ]
    assert different == []


def odd(struct: Struct, version: int, text: str) -> int:
    """Set all strings of a message to `text`; how many."""
    count = 0
    for field in struct.FIELDS:
        if version in field.versions:
            value, found = _odd(field, getattr(struct, field.name), version, text)
            setattr(struct, field.name, value)
            count += found
    return count


def _odd(field: Field, value: Any, version: int, text: str) -> tuple[Any, int]:
    if field.kind is Kind.STRING:
        return text, 1
    if field.kind is Kind.STRUCT and value is not None:
        return value, odd(value, version, text)
    if field.kind is Kind.ARRAY:
        assert field.element is not None
        pairs = [_odd(field.element, one, version, text) for one in value]
        return [pair[0] for pair in pairs], sum(pair[1] for pair in pairs)
    return value, 0


@pytest.mark.parametrize("text", [f"a{REPLACED}b", REPLACED * 100], ids=["short", "long"])
def test_every_string_of_every_message_may_be_no_utf_8(text: str) -> None:
    found = 0
    for message, version in every_version():
        sent, _ = Filling(version).of(message)
        found += odd(sent, version, text)
        content = memoryview(sent.encode(version).replace(REPLACED.encode(), SURROGATE))

        assert message.decode(version, content) == sent, (message, version)
        assert read_in_steps(message, version, content)[0] == (sent, len(content))
    assert found > 3000


def _requests() -> list[tuple[type[Message], int]]:
    return [pair for pair in every_version() if issubclass(pair[0], Request)]


def test_every_request_may_be_of_a_client_whose_id_is_no_utf_8() -> None:
    for client_id in (b"Z\xfcrich", b"\xfc" * 200):
        for message, version in _requests():
            assert issubclass(message, Request)
            if (message.API_KEY, version) == (7, 0):
                continue  # ControlledShutdown v0 has no client id
            frame = message.API_KEY.to_bytes(2) + version.to_bytes(2) + bytes(4)
            frame += len(client_id).to_bytes(2) + client_id
            frame += b"\0" if version in message.FLEXIBLE else b""

            header, position = parse_request_header(memoryview(frame))

            assert header.client_id == client_id.decode(errors="replace")
            assert position == len(frame)


def test_a_string_that_would_grow_past_the_longest_is_refused() -> None:
    most, more = b"\xff" * 10_922, b"\xff" * 10_923
    request = HeartbeatRequest(group_id="x" * len(more), generation_id=1, member_id="")
    for version in (0, 4):
        wrong = request.encode(version).replace(b"x" * len(more), more)
        with pytest.raises(DecodeError, match="group_id is not UTF-8 and grows to 32769 bytes"):
            HeartbeatRequest.decode(version, wrong)
    header = struct.pack(">hhih", 3, 0, 7, len(more))
    with pytest.raises(DecodeError, match="client id is not UTF-8"):
        parse_request_header(memoryview(header + more))
    assert parse_request_header(memoryview(struct.pack(">hhih", 3, 0, 7, len(most)) + most))


def test_the_name_of_a_records_header_may_be_no_utf_8() -> None:
    content = b"\x06" + SURROGATE + b"\x02v"
    assert _headers(content, 0, len(content), 1)[0] == ((REPLACED, b"v"),)


def test_half_a_pair_of_surrogates_is_sent_as_a_question_mark() -> None:
    sent = HeartbeatRequest(group_id="a\ud800b", generation_id=1, member_id="\ud83d\ude00")
    for version in (0, 4):
        read = HeartbeatRequest.decode(version, sent.encode(version))
        assert (read.group_id, read.member_id) == ("a?b", "😀")
    assert unpaired_replaced("\udfff\ud83d\ude00") == "?😀".encode()


def test_pairs_of_surrogates_are_joined_and_halves_stay() -> None:
    assert joined_pairs("a\ud83d\ude00\ud800") == "a😀\ud800"
