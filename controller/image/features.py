"""Finalised feature levels (KIP-584) in the image, and the record versions they stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from controller.image.map_delta import MapDelta
from protocol.metadata_log.log_records import FeatureLevelRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"
OLDEST_METADATA_VERSION: Final = 7
"""3.3-IV3, the oldest that Kafka 4 reads; in force until a record names another."""

REGISTER_BROKER_SINCE: Final = {8: 2, 17: 3, 30: 4}
PARTITION_SINCE: Final = {17: 1, 23: 2}
SCRAM_SINCE: Final = 11
DELEGATION_TOKENS_SINCE: Final = 14
CONTROLLERS_SINCE: Final = 15


class RecordVersions(NamedTuple):
    """Versions in which records are written at one `metadata.version`; the others have only 0."""

    register_broker: int
    partition: int

    @classmethod
    def at(cls, metadata_version: int) -> RecordVersions:
        """Look up the versions of a level."""
        return cls(
            register_broker=_newest(REGISTER_BROKER_SINCE, metadata_version, 1),
            partition=_newest(PARTITION_SINCE, metadata_version, 0),
        )


class FeaturesDelta(MapDelta[str, int]):
    """Changes of finalised levels, by feature. A feature without a level is at 0."""

    __slots__ = ()

    def replay(self, record: FeatureLevelRecord) -> None:
        """Replay FeatureLevelRecord: 0 removes the level.

        `kraft.version` is that of the Raft protocol, stored in control records, and is skipped
        (KAFKA-18979).
        """
        if record.name == KRAFT_VERSION:
            return
        if record.feature_level:
            self.set(record.name, record.feature_level)
        else:
            self.remove(record.name)


def feature_records(levels: Mapping[str, int]) -> Iterator[FeatureLevelRecord]:
    """The records of a snapshot, `metadata.version` first: it says how to read the others."""
    for name in sorted(levels, key=lambda one: (one != METADATA_VERSION, one)):
        yield FeatureLevelRecord(name=name, feature_level=levels[name])


def _newest(since: Mapping[int, int], metadata_version: int, otherwise: int) -> int:
    versions = (version for level, version in since.items() if level <= metadata_version)
    return max(versions, default=otherwise)
