"""Frames of metadata records: what is written is read, and what is not known is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from protocol.metadata_log.frames import (
    RECORD_TYPES,
    decode_metadata_record,
    encode_metadata_record,
)
from protocol.metadata_log.log_records import FeatureLevelRecord, NoOpRecord
from protocol.metadata_log.topic_records import PartitionChangeRecord
from protocol.uuids import ZERO_UUID
from protocol.wire import DecodeError

if TYPE_CHECKING:
    from protocol.schema import MetadataRecord


def test_frame_holds_type_and_version_before_the_record() -> None:
    level = FeatureLevelRecord(name="metadata.version", feature_level=30)
    assert encode_metadata_record(level, 0) == b"\x01\x0c\x00\x11metadata.version\x00\x1e\x00"
    assert (
        encode_metadata_record(PartitionChangeRecord(topic_id=ZERO_UUID), 2)[:3] == b"\x01\x05\x02"
    )


@pytest.mark.parametrize("record", RECORD_TYPES.values())
def test_each_record_is_read_as_it_was_written(record: type[MetadataRecord]) -> None:
    for version in range(record.VERSIONS.first, record.VERSIONS.last + 1):
        written = encode_metadata_record(record(), version)
        assert decode_metadata_record(memoryview(written)) == (record(), version)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "ends too early"),
        (b"\x01\x14", "ends too early"),
        (b"\x01\x0c\x00\x05ab", "ends too early"),
        (b"\x00\x14\x00\x00", "frame version 0, not 1"),
        (b"\x01\x0d\x00\x00", "type 13 are not known"),
        (b"\x01\x80\x01\x00\x00", "type 128 are not known"),
        (b"\x01\x14\x01\x00", "NoOpRecord version 1 is not known"),
        (encode_metadata_record(NoOpRecord(), 0) + b"\x00", "1 bytes left over"),
    ],
)
def test_frame_that_is_not_known_is_refused(value: bytes, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        decode_metadata_record(value)
