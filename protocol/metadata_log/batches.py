"""Batches of `__cluster_metadata` and of its snapshots: their records, and control messages."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from protocol.errors import ApiError
from protocol.metadata_log.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from protocol.metadata_log.frames import decode_metadata_record
from protocol.records.batch import compute_crc, parse_header
from protocol.records.builder import NewRecord
from protocol.records.record import iterate_records
from protocol.wire import DecodeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from protocol.records.record import Record
    from protocol.schema import Message, MetadataRecord
    from protocol.wire import Buffer

CONTROL_MESSAGES: Final[Mapping[int, type[Message]]] = {
    2: LeaderChangeMessage,
    3: SnapshotHeaderRecord,
    4: SnapshotFooterRecord,
    5: KRaftVersionRecord,
    6: VotersRecord,
}
"""By control type."""

CONTROL_TYPES: Final[Mapping[type[Message], int]] = {
    message: control_type for control_type, message in CONTROL_MESSAGES.items()
}

KEY_VERSION: Final = 0
_KEY = struct.Struct(">hh")
_VERSION = struct.Struct(">h")


class UnreadableMetadataError(ValueError):
    """Bytes of the metadata log, or of a snapshot, that must not be passed by."""


def metadata_records(batch: Buffer) -> Iterator[MetadataRecord]:
    """Each record of a whole data batch; raises UnreadableMetadataError, which names the offset."""
    for record in _records(batch):
        if record.key is not None or record.value is None:
            raise UnreadableMetadataError(f"offset {record.offset}: no metadata record")
        try:
            yield decode_metadata_record(record.value)[0]
        except DecodeError as error:
            raise UnreadableMetadataError(f"offset {record.offset}: {error}") from error


def control_messages(batch: Buffer) -> Iterator[Message]:
    """Each message of a whole control batch; raises UnreadableMetadataError."""
    for record in _records(batch):
        try:
            yield _control_message(record)
        except (DecodeError, struct.error) as error:
            raise UnreadableMetadataError(f"offset {record.offset}: {error}") from error


def control_record(message: Message, timestamp_ms: int, version: int = 0) -> NewRecord:
    """The record that holds a control message in a version."""
    key = _KEY.pack(KEY_VERSION, CONTROL_TYPES[type(message)])
    return NewRecord(timestamp_ms, key, message.encode(version))


def check_batch(batch: Buffer) -> None:
    """Raise UnreadableMetadataError if the checksum of a whole batch is wrong."""
    header = parse_header(batch)
    if header.crc != compute_crc(batch, 0, header.size_in_bytes):
        raise UnreadableMetadataError(f"offset {header.base_offset}: the checksum is wrong")


def _records(batch: Buffer) -> Iterator[Record]:
    try:
        yield from iterate_records(batch)
    except ApiError as error:
        offset = parse_header(batch).base_offset
        raise UnreadableMetadataError(f"batch at offset {offset}: {error.message}") from error


def _control_message(record: Record) -> Message:
    key, value = record.key or b"", record.value or b""
    _, control_type = _KEY.unpack(key)
    message = CONTROL_MESSAGES.get(control_type)
    if message is None:
        raise DecodeError(f"control records of type {control_type} are not known")
    (version,) = _VERSION.unpack_from(value)
    if version not in message.VERSIONS:
        raise DecodeError(f"{message.__name__} version {version} is not known")
    return message.decode(version, value)
