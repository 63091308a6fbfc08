"""A consumer group member as a process of its own, so that it can be killed.

Run as `python -m tests.interop.workloads.member '<json of MemberOptions>'`. It polls until it gets
SIGTERM, then leaves the group. It prints one JSON line when its assignment changes,
`{"assigned": [0, 2]}`, and one for each record, `{"record": [partition, offset]}`; it commits
after each poll, what was printed before. All clients are driven through the same verbs.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import signal
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any, Protocol

HEARTBEAT_MS = 300
POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class MemberOptions:
    """Group and settings of a member."""

    client: str
    bootstrap: str
    topic: str
    group: str
    strategy: str
    """`range`, `roundrobin`, `sticky` or `cooperative-sticky`."""

    session_timeout_ms: int = 2000
    instance_id: str | None = None

    def to_json(self) -> str:
        """Return what the process takes as its only argument."""
        return json.dumps(asdict(self))


class Member(Protocol):
    """Interface that the loop needs of a client."""

    def poll(self) -> list[tuple[int, int]]:
        """Return partition and offset of what came within `POLL_SECONDS`."""

    def commit(self) -> None:
        """Commit what was polled; a rebalance under way may prevent it."""

    def assignment(self) -> list[int]:
        """Return the partitions held now."""

    def close(self) -> None:
        """Leave the group (a static member only closes its connection)."""


class ConfluentMember:
    """librdkafka."""

    def __init__(self, options: MemberOptions) -> None:
        from confluent_kafka import Consumer

        config: dict[str, Any] = {
            "bootstrap.servers": options.bootstrap,
            "group.id": options.group,
            "partition.assignment.strategy": options.strategy,
            "session.timeout.ms": options.session_timeout_ms,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        if options.instance_id is not None:
            config["group.instance.id"] = options.instance_id
        self._consumer = Consumer(config)
        self._consumer.subscribe([options.topic])

    def poll(self) -> list[tuple[int, int]]:
        from confluent_kafka import KafkaException

        messages = self._consumer.consume(100, POLL_SECONDS)
        for message in messages:
            error = message.error()
            if error is not None and (error.fatal() or not error.retriable()):
                raise KafkaException(error)
        good = [message for message in messages if message.error() is None]
        return [(_known(message.partition()), _known(message.offset())) for message in good]

    def commit(self) -> None:
        from confluent_kafka import KafkaError, KafkaException

        try:
            self._consumer.commit(asynchronous=False)
        except KafkaException as problem:
            if problem.args[0].code() not in _commit_comes_later(KafkaError):
                raise

    def assignment(self) -> list[int]:
        return [held.partition for held in self._consumer.assignment()]

    def close(self) -> None:
        self._consumer.close()


def _commit_comes_later(errors: Any) -> tuple[int, ...]:
    return (errors.REBALANCE_IN_PROGRESS, errors.ILLEGAL_GENERATION, errors._NO_OFFSET)


def _known(value: int | None) -> int:
    assert value is not None
    return value


class KafkaPythonMember:
    """kafka-python."""

    def __init__(self, options: MemberOptions) -> None:
        from kafka import KafkaConsumer

        self._consumer = KafkaConsumer(
            bootstrap_servers=options.bootstrap,
            group_id=options.group,
            group_instance_id=options.instance_id,
            partition_assignment_strategy=[_kafka_python_assignor(options.strategy)],
            session_timeout_ms=options.session_timeout_ms,
            heartbeat_interval_ms=HEARTBEAT_MS,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        # The metadata must be there before the first poll joins. A leader that assigned without
        # it joins again as soon as it comes, and 3.0.12 can lose that second join: the reason for
        # it ("the metadata is not what was assigned by") ends when the leader assigns anew, before
        # its SyncGroup is answered. If poll's time ends in between, the next poll sees nothing to
        # join, so nobody completes the join, heartbeats stay off, and poll spins, as the next
        # heartbeat is always due. A broker shows it that answers a whole join within the client's
        # pause of 100 ms between two requests for metadata.
        self._consumer.subscribe([options.topic])
        while not self._consumer.partitions_for_topic(options.topic):
            time.sleep(POLL_SECONDS)

    def poll(self) -> list[tuple[int, int]]:
        batches = self._consumer.poll(timeout_ms=int(POLL_SECONDS * 1000))
        return [(row.partition, row.offset) for batch in batches.values() for row in batch]

    def commit(self) -> None:
        from kafka.errors import CommitFailedError, RebalanceInProgressError

        with contextlib.suppress(CommitFailedError, RebalanceInProgressError):
            self._consumer.commit()

    def assignment(self) -> list[int]:
        return [held.partition for held in self._consumer.assignment()]

    def close(self) -> None:
        self._consumer.close()


class AioMember:
    """aiokafka, with a loop of its own."""

    def __init__(self, options: MemberOptions) -> None:
        self._loop = asyncio.new_event_loop()
        self._consumer = self._loop.run_until_complete(self._start(options))

    async def _start(self, options: MemberOptions) -> Any:
        from aiokafka import AIOKafkaConsumer

        consumer = AIOKafkaConsumer(
            options.topic,
            bootstrap_servers=options.bootstrap,
            group_id=options.group,
            group_instance_id=options.instance_id,
            partition_assignment_strategy=[_aio_assignor(options.strategy)],
            session_timeout_ms=options.session_timeout_ms,
            heartbeat_interval_ms=HEARTBEAT_MS,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await consumer.start()
        return consumer

    def poll(self) -> list[tuple[int, int]]:
        return self._loop.run_until_complete(self._poll())

    async def _poll(self) -> list[tuple[int, int]]:
        batches = await self._consumer.getmany(timeout_ms=int(POLL_SECONDS * 1000))
        return [(row.partition, row.offset) for batch in batches.values() for row in batch]

    def commit(self) -> None:
        from aiokafka.errors import CommitFailedError

        with contextlib.suppress(CommitFailedError):
            self._loop.run_until_complete(self._consumer.commit())

    def assignment(self) -> list[int]:
        return [held.partition for held in self._consumer.assignment()]

    def close(self) -> None:
        self._loop.run_until_complete(self._consumer.stop())
        self._loop.close()


MEMBERS: dict[str, type[Any]] = {
    "confluent-kafka": ConfluentMember,
    "kafka-python": KafkaPythonMember,
    "aiokafka": AioMember,
}


def _kafka_python_assignor(strategy: str) -> Any:
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

    return {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
        "cooperative-sticky": CooperativeStickyAssignor,
    }[strategy]


def _aio_assignor(strategy: str) -> Any:
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

    return {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
    }[strategy]


class Leave:
    """Turned on by SIGTERM."""

    asked = False

    def __call__(self, *_: object) -> None:
        self.asked = True


def main() -> None:
    """Poll until told to leave, and print the events."""
    options = MemberOptions(**json.loads(sys.argv[1]))
    logging.basicConfig(level=logging.WARNING)
    leave = Leave()
    signal.signal(signal.SIGTERM, leave)
    member: Member = MEMBERS[options.client](options)
    held: list[int] = []
    while not leave.asked:
        polled = member.poll()
        for partition, offset in polled:
            _say({"record": [partition, offset]})
        if polled:
            member.commit()
        now = sorted(member.assignment())
        if now != held:
            held = now
            _say({"assigned": held})
    member.close()


def _say(row: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(row) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
