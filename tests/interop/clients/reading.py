"""Consumers of the Python clients that are given their partitions, driven through the same verbs.

They read from a group's offsets on, committed records only unless told otherwise. All calls wait;
aiokafka gets a loop per object.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Protocol

from tests.interop.conftest import eventually, patiently

TIMEOUT_SECONDS = 120.0
POLL_SECONDS = 0.1
COMMITTED = "read_committed"
UNCOMMITTED = "read_uncommitted"

Read = tuple[int, int, bytes]
"""Partition, offset and value of a record."""


class Reader(Protocol):
    """Reads all partitions of a topic, from a group's offsets or the start.

    Made as `Class(bootstrap, topic, group, isolation)`.
    """

    def poll(self, count: int) -> list[Read]:
        """Return what is there within `POLL_SECONDS`, `count` records at most."""

    def positions(self) -> dict[int, int]:
        """Return the offset that comes next, by partition."""

    def ends(self) -> dict[int, int]:
        """Return where the topic ends now under this isolation level, by partition."""

    def committed(self) -> dict[int, int]:
        """Return the group's offsets, once none is pending; 0 where there is none."""

    def seek(self, positions: dict[int, int]) -> None:
        """Go on reading from there."""

    def close(self) -> None:
        """Close sockets and threads."""


class ConfluentReader:
    """librdkafka."""

    def __init__(self, bootstrap: str, topic: str, group: str, isolation: str = COMMITTED) -> None:
        from confluent_kafka import Consumer, IsolationLevel, TopicPartition
        from confluent_kafka.admin import AdminClient

        self._isolation = IsolationLevel[isolation.upper()]
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self.native = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "isolation.level": isolation,
                "enable.auto.commit": False,
                "enable.partition.eof": True,  # only this tells that nothing but markers is left
                "auto.offset.reset": "earliest",
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        self._next: dict[int, int] = {}
        # Another broker of the cluster may hear of a new topic a moment later.
        eventually(lambda: bool(self._partitions(topic)), TIMEOUT_SECONDS)
        self._held = [TopicPartition(topic, index) for index in self._partitions(topic)]
        self.seek(self.committed())

    def _partitions(self, topic: str) -> list[int]:
        return list(self.native.list_topics(topic, TIMEOUT_SECONDS).topics[topic].partitions)

    def poll(self, count: int) -> list[Read]:
        messages = self.messages(count)
        return [(message.partition(), message.offset(), message.value()) for message in messages]

    def messages(self, count: int) -> list[Any]:
        """Poll as `poll` does, but return the client's own type."""
        from confluent_kafka import KafkaError, KafkaException

        found: list[Any] = []
        consumed: list[Any] = self.native.consume(count, POLL_SECONDS)
        for message in consumed:
            error = message.error()
            if error is None:
                found.append(message)
                self._next[message.partition()] = message.offset() + 1
            elif error.code() == KafkaError._PARTITION_EOF:
                self._next[message.partition()] = message.offset()
            elif error.fatal() or not error.retriable():
                raise KafkaException(error)
        return found

    def positions(self) -> dict[int, int]:
        # The client's own lag behind: right after `seek` they are still those from before it.
        return dict(self._next)

    def ends(self) -> dict[int, int]:
        return patiently(self._ends)

    def _ends(self) -> dict[int, int]:
        from confluent_kafka import admin

        # The consumer's own way waits half a second whenever it does not know a leader.
        latest: Any = admin.OffsetSpec.latest()  # type: ignore[attr-defined, no-untyped-call]
        wanted = dict.fromkeys(self._held, latest)
        asked = self._admin.list_offsets(wanted, isolation_level=self._isolation)
        return {held.partition: one.result(TIMEOUT_SECONDS).offset for held, one in asked.items()}

    def committed(self) -> dict[int, int]:
        found = patiently(lambda: self.native.committed(self._held, TIMEOUT_SECONDS))
        return {one.partition: max(one.offset, 0) for one in found}

    def seek(self, positions: dict[int, int]) -> None:
        from confluent_kafka import TopicPartition

        topic = self._held[0].topic
        self._next = dict(positions)
        self.native.assign([TopicPartition(topic, *one) for one in positions.items()])

    def close(self) -> None:
        self.native.close()


class KafkaPythonReader:
    """kafka-python."""

    def __init__(self, bootstrap: str, topic: str, group: str, isolation: str = COMMITTED) -> None:
        from kafka import KafkaConsumer, TopicPartition

        self.native = KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            isolation_level=isolation,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )
        known = self.native.partitions_for_topic(topic)
        self._held = [TopicPartition(topic, partition) for partition in known]
        self.native.assign(self._held)
        self.seek(self.committed())

    def poll(self, count: int) -> list[Read]:
        batches = self.native.poll(timeout_ms=int(POLL_SECONDS * 1000), max_records=count)
        return [(row.partition, row.offset, row.value) for rows in batches.values() for row in rows]

    def positions(self) -> dict[int, int]:
        return {held.partition: self.native.position(held) for held in self._held}

    def ends(self) -> dict[int, int]:
        return {held.partition: end for held, end in self.native.end_offsets(self._held).items()}

    def committed(self) -> dict[int, int]:
        return {held.partition: self.native.committed(held) or 0 for held in self._held}

    def seek(self, positions: dict[int, int]) -> None:
        for held in self._held:
            self.native.seek(held, positions[held.partition])

    def close(self) -> None:
        self.native.close()


class AioReader:
    """aiokafka."""

    def __init__(self, bootstrap: str, topic: str, group: str, isolation: str = COMMITTED) -> None:
        self.group = group
        self._loop = asyncio.new_event_loop()
        self._wait(self._start(bootstrap, topic, isolation))
        self.seek(self.committed())

    def poll(self, count: int) -> list[Read]:
        timeout_ms = int(POLL_SECONDS * 1000)
        batches = self._wait(self._consumer.getmany(timeout_ms=timeout_ms, max_records=count))
        return [(row.partition, row.offset, row.value) for rows in batches.values() for row in rows]

    def positions(self) -> dict[int, int]:
        return {held.partition: self._wait(self._consumer.position(held)) for held in self._held}

    def ends(self) -> dict[int, int]:
        found = self._wait(self._consumer.end_offsets(self._held))
        return {held.partition: end for held, end in found.items()}

    def committed(self) -> dict[int, int]:
        return {
            held.partition: self._wait(self._consumer.committed(held)) or 0 for held in self._held
        }

    def seek(self, positions: dict[int, int]) -> None:
        for held in self._held:
            self._consumer.seek(held, positions[held.partition])

    def close(self) -> None:
        self._wait(self._consumer.stop())
        self._loop.close()

    async def _start(self, bootstrap: str, topic: str, isolation: str) -> None:
        from aiokafka import AIOKafkaConsumer, TopicPartition

        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=self.group,
            isolation_level=isolation,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )
        await self._consumer.start()
        metadata = await self._consumer._client.fetch_all_metadata()
        known = metadata.partitions_for_topic(topic)
        self._held = [TopicPartition(topic, partition) for partition in known]
        self._consumer.assign(self._held)

    def _wait(self, coroutine: Any) -> Any:
        return self._loop.run_until_complete(asyncio.wait_for(coroutine, TIMEOUT_SECONDS))


READERS: dict[str, type[Any]] = {
    "confluent-kafka": ConfluentReader,
    "kafka-python": KafkaPythonReader,
    "aiokafka": AioReader,
}


def visible(reader: Reader) -> list[Read]:
    """Return everything up to the present end, by partition and offset."""
    ends = reader.ends()
    records: list[Read] = []
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while any(reader.positions()[partition] < end for partition, end in ends.items()):
        records += reader.poll(500)
        if time.monotonic() > deadline:
            raise TimeoutError(f"{reader.positions()} instead of {ends}, {len(records)} records")
    return sorted(records)
