"""AlterReplicaLogDirs: replicas created in a directory, and moved to another."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

import broker.handlers.brokers.alter_replica_log_dirs
import broker.handlers.topics.create_topics  # noqa: F401  (the handlers register themselves)
from config.topic import TopicConfig
from protocol.errors import ErrorCode
from protocol.messages.log_dirs import (
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    DescribeLogDirsRequest,
)
from storage.directory.log_directory import LogDirectory
from tests.broker.handlers.one_broker import OneBroker, run_broker
from tests.broker.handlers.topics.test_create_topics import creation, new

if TYPE_CHECKING:
    from pathlib import Path

Dir = AlterReplicaLogDirsRequest.Dir


def asking(path: Path, *topics: tuple[str, int]) -> AlterReplicaLogDirsRequest:
    """A request for one directory, replicas by topic and partition."""
    wanted = [Dir.Topic(name=topic, partitions=[index]) for topic, index in topics]
    return AlterReplicaLogDirsRequest(dirs=[Dir(path=str(path), topics=wanted)])


def codes(answer: AlterReplicaLogDirsResponse) -> dict[tuple[str, int], int]:
    """The error of each replica."""
    return {
        (topic.topic_name, partition.partition_index): partition.error_code
        for topic in answer.results
        for partition in topic.partitions
    }


def second_directory(broker: OneBroker, path: Path) -> LogDirectory:
    """Give the broker one more."""
    path.mkdir()
    directory = LogDirectory(str(path), broker.logs.directories[0].disk)
    broker.logs.directories.append(directory)
    return directory


@pytest.mark.parametrize("version", [1, 2])
def test_a_replica_stays_or_moves(version: int, tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("orders")), 7)
        other = second_directory(broker, tmp_path / "other")
        replica = ("orders", 0)
        answers = [
            (tmp_path, ErrorCode.NONE),
            (tmp_path / "other", ErrorCode.NONE),
            (tmp_path / "other", ErrorCode.NONE),
            (tmp_path / "nowhere", ErrorCode.LOG_DIR_NOT_FOUND),
        ]
        for path, code in answers:
            assert codes(await broker.ask(asking(path, replica), version)) == {replica: code}
        (move,) = broker.logs.moves
        assert move.copy.directory is other
        present, future = (await broker.ask(DescribeLogDirsRequest(topics=None), 5)).results
        assert not present.topics[0].partitions[0].is_future_key
        assert future.topics[0].partitions[0].is_future_key
        await broker.ask(asking(tmp_path, replica), version)
        assert len(broker.logs.moves) == 0
        other.fail(OSError(errno.EIO, "bad disk"))
        answer = await broker.ask(asking(tmp_path / "other", replica), version)
        assert codes(answer) == {replica: ErrorCode.KAFKA_STORAGE_ERROR}

    run_broker(tmp_path, scenario)


def test_a_future_replica_is_created_in_the_requested_directory(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("orders", partitions=2)), 7)
        other = second_directory(broker, tmp_path / "other")
        log = broker.logs.get("orders", 0)
        assert log is not None
        topic_id = log.topic_id
        assert topic_id is not None
        for index in (0, 1):
            broker.logs.delete("orders", index)
        path = tmp_path / "other"
        answer = await broker.ask(asking(path, ("orders", 0), ("orders", 1), ("never", 0)), 2)
        assert codes(answer) == {
            ("orders", 0): ErrorCode.REPLICA_NOT_AVAILABLE,
            ("orders", 1): ErrorCode.REPLICA_NOT_AVAILABLE,
            ("never", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        created = broker.logs.create("orders", 0, topic_id, TopicConfig())
        assert created.directory is other
        assert codes(await broker.ask(asking(path, ("orders", 0)), 2)) == {("orders", 0): 0}
        other.fail(OSError(errno.EIO, "bad disk"))
        rest = broker.logs.create("orders", 1, topic_id, TopicConfig())
        assert rest.directory is broker.logs.directories[0], "the one wanted is offline"

    run_broker(tmp_path, scenario)


def test_of_several_directories_for_one_replica_the_last_counts(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("orders")), 7)
        second_directory(broker, tmp_path / "other")
        to_and_fro = [tmp_path / "other", tmp_path] * 20
        request = AlterReplicaLogDirsRequest(
            dirs=[one for path in to_and_fro for one in asking(path, ("orders", 0)).dirs]
        )
        (topic,) = (await broker.ask(request, 2)).results
        assert [one.error_code for one in topic.partitions] == [ErrorCode.NONE]
        assert (len(broker.logs.moves), list((tmp_path / "other").iterdir())) == (0, [])

    run_broker(tmp_path, scenario)
