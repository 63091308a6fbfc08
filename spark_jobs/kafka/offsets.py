"""Offsets as the driver sees them: where partitions begin and end, and how far groups came.

Like `topics` it speaks through the Java admin client inside Spark's driver, so that `--kafka`
settings count here too.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from spark_jobs.kafka.topics import clear_errors, open_admin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from spark_jobs.options import SparkOptions

NONE_SO_LATE = -1
"""What brokers answer for a time that no record of the partition has reached."""


class Offsets:
    """The offsets of one broker or cluster."""

    def __init__(self, admin: Any, jvm: Any, servers: str) -> None:  # noqa: ANN401 - Java objects
        self._admin = admin
        self._jvm = jvm
        self._servers = servers

    def topics(self) -> frozenset[str]:
        """Return the names of all topics but internal ones."""
        with clear_errors(self._servers):
            return frozenset(self._admin.listTopics().names().get())

    def earliest(self, topic: str) -> dict[int, int]:
        """Return the offset of the first record of each partition."""
        return self._at(topic, self._specs.earliest())

    def latest(self, topic: str) -> dict[int, int]:
        """Return for each partition the offset that the next record will have.

        In a partition with an open transaction, where that begins: records behind it are not read.
        """
        return self._at(topic, self._specs.latest())

    def high_watermarks(self, topic: str) -> dict[int, int]:
        """Return the same, as if no transaction were open."""
        return self._at(topic, self._specs.latest(), "READ_UNCOMMITTED")

    def at_time(self, topic: str, timestamp_ms: int) -> dict[int, int]:
        """Return the first offset of each partition whose record is not older than that.

        Where there is none, what `latest` says.
        """
        latest = self.latest(topic)
        found = self._at(topic, self._specs.forTimestamp(timestamp_ms))
        return {
            partition: latest[partition] if offset == NONE_SO_LATE else offset
            for partition, offset in found.items()
        }

    def groups(self) -> list[str]:
        """Return the names of all consumer groups."""
        with clear_errors(self._servers):
            found = self._admin.listConsumerGroups().all().get()
            return sorted(group.groupId() for group in found)

    def committed(self, group: str) -> dict[tuple[str, int], int]:
        """Return how far a group came, by topic and partition."""
        with clear_errors(self._servers):
            result = self._admin.listConsumerGroupOffsets(group)
            found = result.partitionsToOffsetAndMetadata().get()
            return {
                (place.topic(), place.partition()): position.offset()
                for place, position in found.items()
                if position is not None
            }

    @property
    def _specs(self) -> Any:  # noqa: ANN401 - a Java class
        return self._jvm.org.apache.kafka.clients.admin.OffsetSpec

    def _at(
        self,
        topic: str,
        spec: Any,  # noqa: ANN401 - a Java object
        isolation: str = "READ_COMMITTED",
    ) -> dict[int, int]:
        levels = self._jvm.org.apache.kafka.common.IsolationLevel
        level = self._jvm.org.apache.kafka.clients.admin.ListOffsetsOptions(
            levels.valueOf(isolation)
        )
        wanted = self._jvm.java.util.HashMap()
        with clear_errors(self._servers):
            names = self._jvm.java.util.List.of(topic)
            described = self._admin.describeTopics(names).allTopicNames().get()
            for partition in described.get(topic).partitions():
                place = self._jvm.org.apache.kafka.common.TopicPartition(
                    topic, partition.partition()
                )
                wanted.put(place, spec)
            found = self._admin.listOffsets(wanted, level).all().get()
            by_partition = {place.partition(): info.offset() for place, info in found.items()}
        return dict(sorted(by_partition.items()))


@contextmanager
def open_offsets(spark: SparkSession, options: SparkOptions) -> Iterator[Offsets]:
    """Open an admin client in Spark's driver, and close it at the end."""
    with open_admin(spark, options) as (admin, jvm):
        yield Offsets(admin, jvm, options.bootstrap_servers)
