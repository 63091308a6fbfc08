"""Keeps what hostile frames create within bounds, and what they need there; cleans up at the end.

A topic whose name was damaged stays until somebody deletes it, and so does a group: that a broker
keeps what it was told to keep is no leak.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from protocol.headers import request_front, response_header_bytes
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.hostile.clients.controls import GROUP, TOPICS
from tests.hostile.frames import names
from tests.support.wire import RawConnection

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.hostile.frames.names import Identifiers

CALL_SECONDS: Final = 60.0
METADATA_VERSION: Final = 12
PIECE: Final = 200
"""Topics or groups that are deleted by one request."""

BULKY_RECORDS: Final = 20
BULKY_BYTES: Final = 900_000
KEPT: Final = frozenset({*TOPICS, *names.INTERNAL_TOPICS, *names.TOPICS, names.BULKY_TOPIC})
CONFIG: Final = {"retention.bytes": "20000000", "segment.bytes": "5000000"}


class Janitor:
    """Of one broker. Every method blocks."""

    def __init__(self, port: int, known: Identifiers) -> None:
        self._port = port
        self._known = known
        self._bootstrap = f"127.0.0.1:{port}"
        self._admin = AdminClient({"bootstrap.servers": self._bootstrap, "log_level": 0})
        self.removed_topics = 0
        self.removed_groups = 0

    def prepare(self) -> None:
        """Create what frames name, and the records that deaf clients fetch."""
        self._create([*names.TOPICS, names.BULKY_TOPIC])
        producer = Producer(
            {"bootstrap.servers": self._bootstrap, "message.max.bytes": 2 * BULKY_BYTES}
        )
        for _ in range(BULKY_RECORDS):
            producer.produce(names.BULKY_TOPIC, bytes(BULKY_BYTES), partition=0)
        producer.flush(CALL_SECONDS)
        self._learn()

    def tidy(self) -> None:
        """Create again what is missing; remove what bears no name of ours."""
        found = self._topics()
        self._create(sorted({*names.TOPICS, names.BULKY_TOPIC} - found))
        self.removed_topics += self._delete_topics(found - KEPT)
        self._learn()

    def clean(self) -> None:
        """Remove all that hostile frames have made."""
        own = {*TOPICS, *names.INTERNAL_TOPICS}
        self.removed_topics += self._delete_topics(self._topics() - own)
        listed = self._admin.list_consumer_groups().result(CALL_SECONDS)
        groups = sorted({one.group_id for one in listed.valid} - {GROUP, "auditor"})
        for start in range(0, len(groups), PIECE):
            piece = [group for group in groups[start : start + PIECE] if group]
            self.removed_groups += self._settle(self._admin.delete_consumer_groups(piece))

    def _create(self, topics: list[str]) -> None:
        wanted = [NewTopic(name, names.PARTITIONS, 1, config=CONFIG) for name in topics]
        if wanted:
            self._settle(self._admin.create_topics(wanted))

    def _delete_topics(self, topics: Iterable[str]) -> int:
        ordered = sorted(name for name in topics if name)
        count = 0
        for start in range(0, len(ordered), PIECE):
            piece = ordered[start : start + PIECE]
            count += self._settle(self._admin.delete_topics(piece, operation_timeout=CALL_SECONDS))
        return count

    def _settle(self, futures: dict[str, Any]) -> int:
        """Wait for all; frames may have been quicker, so errors mean nothing."""
        count = 0
        for future in futures.values():
            with contextlib.suppress(KafkaException):
                future.result(CALL_SECONDS)
                count += 1
        return count

    def _topics(self) -> set[str]:
        return {topic.name for topic in self._metadata().topics if topic.name}

    def _learn(self) -> None:
        for topic in self._metadata().topics:
            if topic.name:
                self._known.note_topic(topic.name, topic.topic_id)

    def _metadata(self) -> MetadataResponse:
        body = MetadataRequest(topics=None).encode(METADATA_VERSION)
        key = int(MetadataRequest.API_KEY)
        front = request_front(1, key, METADATA_VERSION, b"janitor", len(body))
        with RawConnection.open(self._port, CALL_SECONDS) as connection:
            connection.send(front + body)
            content = connection.receive()
        start = response_header_bytes(key, METADATA_VERSION)
        return MetadataResponse.decode(METADATA_VERSION, content, start)
