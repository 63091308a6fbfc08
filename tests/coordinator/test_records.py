"""Bytes of `__consumer_offsets` records, written out by hand from Apache's schemas."""

from __future__ import annotations

import pytest

from coordinator import records
from coordinator.groups.group import ClassicGroup
from coordinator.groups.member import Member
from coordinator.offsets.offset_store import CommittedOffset
from protocol.wire import DecodeError


def test_offset_commit_is_key_version_1_and_value_version_3() -> None:
    record = records.offset_record("g", "t", 7, CommittedOffset(42, 5, "note", 1_000))
    assert records.encode_key(record) == bytes.fromhex("0001 0001 67 0001 74 00000007")
    assert records.encode_value(record) == bytes.fromhex(
        "0003 000000000000002a 00000005 0004 6e6f7465 00000000000003e8"
    )


def test_offset_commit_with_its_own_expiry_is_value_version_1() -> None:
    record = records.offset_record("g", "t", 7, CommittedOffset(42, 5, "", 1_000, 2_000))
    assert records.encode_value(record) == bytes.fromhex(
        "0001 000000000000002a 0000 00000000000003e8 00000000000007d0"
    )


def test_generation_is_key_version_2_and_value_version_3() -> None:
    group = ClassicGroup("g")
    group.add_member(
        Member(
            member_id="m",
            group_instance_id="i",
            client_id="c",
            client_host="/h",
            rebalance_timeout_ms=60_000,
            session_timeout_ms=10_000,
            protocols=(("range", b"\x01\x02"),),
        ),
        "consumer",
    )
    group.generation = 3
    group.protocol = "range"
    record = records.generation_record(group, {"m": b"\x09"}, 1_000)
    assert records.encode_key(record) == bytes.fromhex("0002 0001 67")
    assert records.encode_value(record) == bytes.fromhex(
        "0003 0008 636f6e73756d6572 00000003 0005 72616e6765 0001 6d 00000000000003e8 00000001"
        "0001 6d 0001 69 0001 63 0002 2f68 0000ea60 00002710 00000002 0102 00000001 09"
    )


def test_empty_generation_has_no_protocol_and_no_leader() -> None:
    group = ClassicGroup("g")
    group.protocol_type = "consumer"
    record = records.empty_generation_record(group, 4, 1_000)
    assert records.encode_value(record) == bytes.fromhex(
        "0003 0008 636f6e73756d6572 00000004 ffff ffff 00000000000003e8 00000000"
    )


@pytest.mark.parametrize(
    "record",
    [
        records.offset_record("g", "t", 0, CommittedOffset(1, -1, "", 2)),
        records.offset_tombstone("g", "t", 0),
        records.group_tombstone("g"),
        records.empty_generation_record(ClassicGroup("g"), 1, 2),
    ],
)
def test_records_read_back_as_written(record: records.OffsetsRecord) -> None:
    assert records.decode(records.encode_key(record), records.encode_value(record)) == record


def test_oldest_offset_key_is_understood() -> None:
    old = bytes.fromhex("0000 0001 67 0001 74 00000007")
    value = bytes.fromhex("0000 000000000000002a 0000 00000000000003e8")
    decoded = records.decode(old, value)
    assert decoded is not None
    assert decoded.key == records.offset_tombstone("g", "t", 7).key


def test_records_of_other_protocols_are_left_alone() -> None:
    assert records.decode(bytes.fromhex("00ff 0001 67"), b"\0\0") is None


@pytest.mark.parametrize("key", [b"", b"\0", b"\xff\xff", b"\0\x02\0\x05g", b"\0\x01"])
def test_damaged_key_is_an_error(key: bytes) -> None:
    with pytest.raises(DecodeError):
        records.decode(key, None)
