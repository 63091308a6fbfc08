"""`00000000000000000000-0000000000.checkpoint`: the snapshot that a controller begins with.

    offset
    0       control batch   SnapshotHeaderRecord, KRaftVersionRecord unless that is 0, and
                            VotersRecord if voters are known
    then    batch           FeatureLevelRecords, `metadata.version` first, and SCRAM credentials
    last    control batch   SnapshotFooterRecord

All is at leader epoch 0, and offsets go on from one batch to the next. The file lies in the
directory of `__cluster_metadata` (KIP-853, KIP-1170).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from controller.image.features import KRAFT_VERSION, feature_records
from protocol.metadata_log.control_records import (
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from protocol.metadata_log.frames import encode_metadata_record
from protocol.records.builder import NewRecord, build_batch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from protocol.metadata_log.security_records import UserScramCredentialRecord
    from protocol.schema import Message, MetadataRecord

FILE_NAME: Final = f"{0:020d}-{0:010d}.checkpoint"
LEADER_EPOCH: Final = 0
_KEY: Final = struct.Struct(">hh")
_CONTROL_TYPES: Final[Mapping[type[Message], int]] = {
    SnapshotHeaderRecord: 3,
    SnapshotFooterRecord: 4,
    KRaftVersionRecord: 5,
    VotersRecord: 6,
}


def bootstrap_records(
    levels: Mapping[str, int], credentials: Iterable[UserScramCredentialRecord] = ()
) -> list[MetadataRecord]:
    """The records of the metadata log that a cluster with these levels begins with.

    `kraft.version` is not among them: its record is a control record.
    """
    written = {name: level for name, level in levels.items() if level and name != KRAFT_VERSION}
    return [*feature_records(written), *credentials]


def encode_checkpoint(
    records: Sequence[MetadataRecord], kraft_version: int, voters: VotersRecord | None, now_ms: int
) -> bytes:
    """The bytes of the file."""
    head: list[Message] = [SnapshotHeaderRecord(version=0, last_contained_log_timestamp=now_ms)]
    if kraft_version:
        head.append(KRaftVersionRecord(version=0, kraft_version=kraft_version))
    if voters is not None:
        head.append(voters)
    data = [NewRecord(now_ms, None, encode_metadata_record(record, 0)) for record in records]
    foot = [SnapshotFooterRecord(version=0)]
    return b"".join(
        (
            _control_batch(head, 0, now_ms),
            build_batch(data, base_offset=len(head), leader_epoch=LEADER_EPOCH),
            _control_batch(foot, len(head) + len(data), now_ms),
        )
    )


def _control_batch(messages: Sequence[Message], base_offset: int, now_ms: int) -> bytearray:
    return build_batch(
        [
            NewRecord(now_ms, _KEY.pack(0, _CONTROL_TYPES[type(message)]), message.encode(0))
            for message in messages
        ],
        base_offset=base_offset,
        leader_epoch=LEADER_EPOCH,
        is_control=True,
    )
