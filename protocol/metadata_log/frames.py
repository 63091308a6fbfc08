"""Values of the records in `__cluster_metadata` and its snapshots (KIP-631).

    frame version   unsigned varint, 1
    record type     unsigned varint
    version         unsigned varint, of the record
    record          to the end

A node that meets a type or a version that it does not know must not go on: it would miss a change
of the cluster. The controller writes none that the finalised `metadata.version` does not allow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from protocol.metadata_log import log_records, node_records, security_records, topic_records
from protocol.schema import MetadataRecord
from protocol.wire import Buffer, DecodeError, encode_uvarint, uvarint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

FRAME_VERSION: Final = 1


def _declared(*modules: ModuleType) -> Iterator[type[MetadataRecord]]:
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, MetadataRecord):
                yield value


RECORD_TYPES: Final = {
    record.RECORD_TYPE: record
    for record in _declared(log_records, node_records, security_records, topic_records)
    if record is not MetadataRecord
}


def encode_metadata_record(record: MetadataRecord, version: int) -> bytes:
    """The value that holds `record`, in a version that it has."""
    front = map(encode_uvarint, (FRAME_VERSION, record.RECORD_TYPE, version))
    return b"".join(front) + record.encode(version)


def decode_metadata_record(value: Buffer) -> tuple[MetadataRecord, int]:
    """The record in a value, and its version.

    Raises DecodeError for a frame, a type or a version that is not known here, and for bytes that
    are too few or too many.
    """
    try:
        frame, position = uvarint(value, 0)
        record_type, position = uvarint(value, position)
        version, position = uvarint(value, position)
    except IndexError:
        raise DecodeError("a metadata record ends too early") from None
    if frame != FRAME_VERSION:
        raise DecodeError(f"a metadata record has frame version {frame}, not {FRAME_VERSION}")
    record = RECORD_TYPES.get(record_type)
    if record is None:
        raise DecodeError(f"metadata records of type {record_type} are not known")
    if version not in record.VERSIONS:
        raise DecodeError(f"{record.__name__} version {version} is not known")
    return record.decode(version, value, position), version
