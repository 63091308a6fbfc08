"""Snapshots are read whole or not at all."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from protocol.metadata_log.batches import UnreadableMetadataError
from protocol.metadata_log.control_records import (
    KRaftVersionRecord,
    SnapshotFooterRecord,
    VotersRecord,
)
from protocol.metadata_log.snapshots import QuorumInForce, SnapshotBatches, SnapshotContent
from protocol.records.batch import iterate_headers
from protocol.records.builder import NewRecord, build_batch
from protocol.uuids import ZERO_UUID
from tests.support.broker_parts.metadata_leader import (
    NOW_MS,
    data_batch,
    feature,
    snapshot_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

VOTERS = VotersRecord(
    version=0,
    voters=[
        VotersRecord.Voter(
            voter_id=1,
            voter_directory_id=ZERO_UUID,
            endpoints=[VotersRecord.Voter.Endpoint(name="CONTROLLER", host="one", port=9093)],
            kraft_version_feature=VotersRecord.Voter.KRaftVersionFeature(
                min_supported_version=0, max_supported_version=1
            ),
        )
    ],
)


def content_of(data: bytes) -> SnapshotContent:
    content = SnapshotContent(data)
    for _ in content.read():
        pass
    return content


def test_snapshot_is_read_as_it_was_written() -> None:
    records = [feature(f"feature {number}") for number in range(250)]
    quorum = QuorumInForce(1, VOTERS)

    content = content_of(snapshot_of(records, 5, quorum))

    assert content.records == records
    assert content.quorum == quorum
    assert content.last_contained_timestamp_ms == NOW_MS


def test_snapshot_of_a_static_quorum_has_no_voters() -> None:
    content = content_of(snapshot_of([], 5, QuorumInForce(0, VOTERS)))
    assert content.quorum == QuorumInForce()


def test_reading_pauses_every_hundred_records() -> None:
    content = SnapshotContent(snapshot_of([feature(str(number)) for number in range(250)], 5))
    assert len(list(content.read())) == 5


def test_header_is_read_without_the_rest() -> None:
    whole = snapshot_of([feature("a")], 5)
    content = SnapshotContent(whole[:-1])
    content.read_header()
    assert content.last_contained_timestamp_ms == NOW_MS
    with pytest.raises(UnreadableMetadataError, match="no header"):
        SnapshotContent(b"").read_header()


def parts(data: bytes) -> list[bytes]:
    """The batches of a snapshot."""
    return [data[at : at + header.size_in_bytes] for at, header in iterate_headers(data)]


def with_another(value: bytes) -> bytes:
    """A snapshot with a record of this value in the place of its own."""
    header, _, footer = parts(snapshot_of([feature("a")], 5))
    batch = build_batch([NewRecord(NOW_MS, None, value)], base_offset=1, leader_epoch=5)
    return header + bytes(batch) + footer


def twice(control: bool) -> bytes:
    """A snapshot with two headers, or with something after its footer."""
    batches = SnapshotBatches(5, NOW_MS)
    first = batches.header(NOW_MS, QuorumInForce())
    if control:
        return bytes(first + batches.header(NOW_MS, QuorumInForce()) + batches.footer())
    return bytes(first + batches.footer() + batches.data([(feature("a"), 0)]))


WHOLE = snapshot_of([feature("a"), feature("b")], 5)
HEADER, DATA, FOOTER = parts(WHOLE)

DAMAGED: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "no footer"),
    "without a footer": (HEADER + DATA, "no footer: it is incomplete"),
    "torn in the footer": (WHOLE[:-1], "cut off in the batch at byte"),
    "torn in a header": (WHOLE[: len(HEADER) + 20], "cut off in the batch at byte"),
    "without a header": (data_batch([feature("a")], 0, 5), "no header"),
    "out of order": (HEADER + FOOTER + DATA, "offset 3 follows, where 1 should"),
    "with a gap": (HEADER + FOOTER, "offset 3 follows, where 1 should"),
    "damaged": (WHOLE[:-20] + bytes([WHOLE[-20] ^ 1]) + WHOLE[-19:], "checksum is wrong"),
    "of another format": (b"\x00" * 100, "no record batch"),
    "frame of version 2": (with_another(b"\x02\x0c\x00"), "offset 1: a metadata record has frame"),
    "unknown type": (with_another(b"\x01\x7f\x00"), "type 127 are not known"),
    "unknown version": (with_another(b"\x01\x0c\x09"), "FeatureLevelRecord version 9"),
    "cut record": (with_another(b"\x01\x0c"), "ends too early"),
    "two headers": (twice(control=True), "SnapshotHeaderRecord is out of place"),
    "records after the footer": (twice(control=False), "records follow the footer"),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_damaged_snapshot_is_refused_in_words(kind: str) -> None:
    data, words = DAMAGED[kind]
    with pytest.raises(UnreadableMetadataError, match=words):
        content_of(data)


def control_batch(key: bytes, value: bytes) -> bytes:
    record = NewRecord(NOW_MS, key, value)
    return bytes(build_batch([record], leader_epoch=5, is_control=True))


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        (struct.pack(">hh", 0, 9), b"\x00\x00", "type 9 are not known"),
        (struct.pack(">hh", 0, 3), b"\x00\x07", "SnapshotHeaderRecord version 7 is not known"),
        (b"\x00", b"\x00\x00", "offset 0"),
        (struct.pack(">hh", 0, 3), b"", "offset 0"),
    ],
)
def test_unknown_control_record_is_refused_in_words(key: bytes, value: bytes, words: str) -> None:
    with pytest.raises(UnreadableMetadataError, match=words):
        content_of(control_batch(key, value))


@pytest.mark.parametrize(
    ("message", "check"),
    [
        (KRaftVersionRecord(version=0, kraft_version=1), lambda one: one.kraft_version == 1),
        (VOTERS, lambda one: one.voters == VOTERS),
        (SnapshotFooterRecord(version=0), lambda one: one == QuorumInForce()),
    ],
)
def test_control_records_change_the_quorum_in_force(
    message: KRaftVersionRecord | VotersRecord | SnapshotFooterRecord,
    check: Callable[[QuorumInForce], bool],
) -> None:
    assert check(QuorumInForce().after(message))
