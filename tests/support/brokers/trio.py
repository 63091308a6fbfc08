"""Three brokers of ours in three racks and their ZooKeeper, for tests that kill and start them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException, TopicPartition, admin
from confluent_kafka.admin import AdminClient

from tests.support.brokers.ours import ours
from tests.support.brokers.zookeeper import ZooKeeperServer
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.brokers.broker_process import BrokerProcess

SIZE = 3
CALL_SECONDS = 30.0
HEALED_SECONDS = 120.0
OFFSETS = "__consumer_offsets"
TRANSACTIONS = "__transaction_state"
KEYS = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.num.partitions": "3",
    "zookeeper.session.timeout.ms": "6000",
    "group.min.session.timeout.ms": "1000",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
}


class Trio:
    """The brokers are 0, 1 and 2, in racks `rack-0`, `rack-1` and `rack-2`."""

    def __init__(self, directory: Path) -> None:
        self.zookeeper = ZooKeeperServer(directory / "zookeeper")
        address = {"zookeeper.connect": self.zookeeper.address}
        self.brokers: list[BrokerProcess] = [
            ours(
                directory / f"broker-{number}",
                {**KEYS, **address, "broker.id": str(number), "broker.rack": f"rack-{number}"},
            )
            for number in range(SIZE)
        ]
        self.bootstrap = ",".join(broker.bootstrap for broker in self.brokers)
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        self._last_answer: object = None
        """The cluster's last answer, for whoever debugs a failed test."""

    def start(self) -> None:
        """Start all that do not run, and wait until they do."""
        if not self.zookeeper.process.is_running():
            self.zookeeper.start()
        down = [broker for broker in self.brokers if not broker.is_running()]
        for broker in down:
            broker.launch()
        for broker in down:
            broker.wait_until_serving()

    def heal(self) -> None:
        """Make all brokers run, with all partitions led and all replicas in sync."""
        self.start()
        assert wait_until(self._is_whole, HEALED_SECONDS), "the cluster does not heal"

    def kill(self) -> None:
        """End everything at once."""
        for broker in self.brokers:
            broker.kill()
        self.zookeeper.kill()

    def leader(self, topic: str, partition: int) -> int:
        """Return the id of the broker that leads a partition; negative while there is none."""
        known = self.admin.list_topics(topic, CALL_SECONDS).topics[topic].partitions
        return known[partition].leader if partition in known else -1

    def wait_for_another_leader(self, topic: str, partition: int, old: int) -> None:
        """Wait until another broker than `old` leads."""

        def has_changed() -> bool:
            return self._asked(lambda: self.leader(topic, partition) not in {old, -1})

        assert wait_until(has_changed, HEALED_SECONDS), f"{topic}-{partition} has no leader"

    def wait_for_records(self, topic: str, partition: int, count: int) -> None:
        """Wait until a partition ends there, or later."""
        latest: Any = admin.OffsetSpec.latest()  # type: ignore[attr-defined, no-untyped-call]
        at = TopicPartition(topic, partition)

        def is_there() -> bool:
            # librdkafka asks with the leader's epoch that it knows, and is fenced for minutes when
            # the leader has stayed and its epoch has not: so it is told of that first.
            self.leader(topic, partition)
            found: int = self.admin.list_offsets({at: latest})[at].result(CALL_SECONDS).offset
            self._last_answer = found
            return found >= count

        is_reached = wait_until(lambda: self._asked(is_there), HEALED_SECONDS)
        assert is_reached, f"{topic}-{partition} does not reach {count}: {self._last_answer!r}"

    def _is_whole(self) -> bool:
        def are_all_in_sync() -> bool:
            told = self.admin.list_topics(timeout=CALL_SECONDS)
            states = [one for topic in told.topics.values() for one in topic.partitions.values()]
            return len(told.brokers) == SIZE and all(
                one.leader >= 0 and len(one.isrs) == len(one.replicas) for one in states
            )

        return self._asked(are_all_in_sync)

    def _asked(self, question: Callable[[], bool]) -> bool:
        try:
            return question()
        except (KafkaException, TimeoutError) as error:
            self._last_answer = error
            return False
