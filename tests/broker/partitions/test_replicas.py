"""The controller's instructions for replicas: lead, follow, stop, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from broker.partitions.replicas import Replicas
from config.topic import TopicConfig
from protocol.errors import ApiError, ErrorCode
from protocol.messages.leader_and_isr import LeaderAndIsrPartitionState
from protocol.messages.stop_replica import StopReplicaRequest
from tests.broker.replica_fetchers.harness import surroundings
from tests.storage.produced import NOW_MS, TOPIC_ID, append, batch, open_directories

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from broker.partitions.partition import Partition
    from storage.directory.directories import LogDirectories

TOPIC = "flights"


class Surroundings:
    """Clock, timers and topic configurations that a broker has."""

    def __init__(self) -> None:
        self.failures: list[tuple[str, list[str]]] = []

    def now_ms(self) -> int:
        return NOW_MS

    monotonic_ms = now_ms

    def soon(self, callback: Callable[[], object]) -> None:
        callback()

    def on_failure(self, name: str, error: BaseException) -> None:
        self.failures.append((name, getattr(error, "__notes__", [])))

    def topic_config(self, topic: str) -> TopicConfig:
        return TopicConfig(retention_ms=77 if topic == TOPIC else 88)


class ToldBroker:
    """Replicas of broker 0, and the changes reported to listeners."""

    def __init__(self, logs: LogDirectories) -> None:
        around: Any = Surroundings()
        self.failures = around.failures
        self.logs = logs
        self.replicas = Replicas(logs, around, surroundings(0, around, around))
        self.changes: list[tuple[str, bool]] = []
        self.replicas.on_leadership_change(self._note)

    def _note(self, partition: Partition, is_leader: bool) -> None:
        self.changes.append((f"{partition.topic}-{partition.index}", is_leader))

    def lead(self, index: int = 0, **fields: Any) -> ErrorCode:
        """Send it LeaderAndIsr for one partition; return the error code."""
        topic_id = fields.pop("topic_id", TOPIC_ID)
        values = {
            "leader": 0,
            "leader_epoch": 0,
            "isr": [0],
            "partition_epoch": 0,
            "replicas": [0],
            "is_new": True,
            **fields,
        }
        state = LeaderAndIsrPartitionState(partition_index=index, controller_epoch=1, **values)
        return self.replicas.lead_or_follow(TOPIC, topic_id, state)

    def stop(self, index: int = 0, *, delete: bool, leader_epoch: int = 9) -> ErrorCode:
        """Send it StopReplica."""
        state = StopReplicaRequest.TopicState.PartitionState(
            partition_index=index, leader_epoch=leader_epoch, delete_partition=delete
        )
        return self.replicas.stop(TOPIC, state)


@pytest.fixture
def broker(tmp_path: Path) -> ToldBroker:
    logs = open_directories(tmp_path)
    logs.load(Surroundings().topic_config)
    return ToldBroker(logs)


def restarted(broker: ToldBroker, *paths: Path) -> ToldBroker:
    broker.logs.close()
    logs = open_directories(*paths)
    logs.load(Surroundings().topic_config)
    return ToldBroker(logs)


def test_new_partition_gets_a_log_with_its_topics_configuration(broker: ToldBroker) -> None:
    assert broker.lead() == ErrorCode.NONE

    partition = broker.replicas.require(TOPIC, 0)
    assert partition.is_leader
    assert partition.log is broker.logs.get(TOPIC, 0)
    assert partition.log.config.retention_ms == 77
    assert broker.replicas.names_by_id == {TOPIC_ID: TOPIC}
    assert broker.changes == [("flights-0", True)]


def test_listeners_hear_of_changes_only(broker: ToldBroker) -> None:
    for epoch, leader in [(0, 0), (1, 0), (2, 5), (3, 5), (4, 0)]:
        assert broker.lead(leader_epoch=epoch, leader=leader) == ErrorCode.NONE

    assert broker.changes == [("flights-0", True), ("flights-0", False), ("flights-0", True)]


def test_listeners_hear_that_a_leader_has_missed_an_epoch(broker: ToldBroker) -> None:
    for epoch in (0, 2):
        broker.lead(leader_epoch=epoch)

    assert broker.changes == [("flights-0", True), ("flights-0", True)]


def test_a_listener_that_raises_costs_neither_other_listeners_nor_partitions(
    broker: ToldBroker, caplog: pytest.LogCaptureFixture
) -> None:
    def raise_error(*_: object) -> None:
        raise KeyError("planted")

    heard: list[tuple[str, bool]] = []
    broker.replicas.on_leadership_change(raise_error)
    broker.replicas.on_leadership_change(lambda part, leads: heard.append((part.topic, leads)))
    broker.replicas.on_assignment(raise_error)

    assert broker.lead() is ErrorCode.NONE
    assert broker.stop(delete=True) is ErrorCode.NONE

    assert heard == [(TOPIC, True), (TOPIC, False)]
    assert len(caplog.records) == 4
    assert (broker.replicas.by_topic, broker.logs.get(TOPIC, 0)) == ({}, None)


def test_a_partition_that_cannot_be_led_is_an_error_of_its_own(
    broker: ToldBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def create(*_: object) -> None:
        raise ValueError("planted")

    with monkeypatch.context() as patched:
        patched.setattr(broker.logs, "create", create)
        assert broker.lead() is ErrorCode.UNKNOWN_SERVER_ERROR
    assert "planted" in caplog.text
    assert broker.lead() is ErrorCode.NONE


def test_older_leader_epoch_is_refused(broker: ToldBroker) -> None:
    broker.lead(leader_epoch=5)

    assert broker.lead(leader_epoch=4, leader=3) == ErrorCode.STALE_CONTROLLER_EPOCH

    assert broker.replicas.require(TOPIC, 0).is_leader


def test_stopped_replica_keeps_its_log(broker: ToldBroker) -> None:
    broker.lead()
    append(broker.replicas.require(TOPIC, 0).log, batch(3))

    assert broker.stop(delete=False) == ErrorCode.NONE

    assert broker.replicas.partition(TOPIC, 0) is None
    assert broker.replicas.names_by_id == {}
    assert broker.changes[-1] == ("flights-0", False)
    assert broker.lead(leader_epoch=1) == ErrorCode.NONE
    assert broker.replicas.require(TOPIC, 0).log.log_end_offset == 3


def test_a_deleted_replica_starts_empty_when_created_again(broker: ToldBroker) -> None:
    broker.lead(0)
    broker.lead(1)
    append(broker.replicas.require(TOPIC, 0).log, batch(3))

    assert broker.stop(0, delete=True) == ErrorCode.NONE
    assert broker.replicas.names_by_id == {TOPIC_ID: TOPIC}, "partition 1 is still there"
    assert broker.stop(0, delete=True) == ErrorCode.NONE, "which may be repeated"

    assert broker.logs.get(TOPIC, 0) is None
    assert broker.lead(0) == ErrorCode.NONE
    assert broker.replicas.require(TOPIC, 0).log.log_end_offset == 0


def test_partition_that_is_not_here_is_named() -> None:
    around: Any = Surroundings()
    replicas = Replicas(around, around, surroundings(0, around, around))

    with pytest.raises(ApiError, match="ghost-3") as refused:
        replicas.require("ghost", 3)

    assert refused.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_log_of_another_incarnation_is_kept_and_not_served(
    broker: ToldBroker, tmp_path: Path
) -> None:
    broker.lead()
    append(broker.replicas.require(TOPIC, 0).log, batch(3))
    other = UUID(int=99)

    assert broker.lead(topic_id=other) == ErrorCode.INCONSISTENT_TOPIC_ID
    again = restarted(broker, tmp_path)
    assert again.lead(topic_id=other) == ErrorCode.INCONSISTENT_TOPIC_ID

    assert again.replicas.partition(TOPIC, 0) is None
    log = again.logs.get(TOPIC, 0)
    assert log is not None
    assert log.log_end_offset == 3
    assert again.lead() == ErrorCode.NONE


def test_log_without_topic_id_takes_the_controllers_for_good(
    broker: ToldBroker, tmp_path: Path
) -> None:
    broker.lead()
    (tmp_path / "flights-0" / "partition.metadata").unlink()

    again = restarted(broker, tmp_path)

    assert again.lead(topic_id=TOPIC_ID) == ErrorCode.NONE
    assert again.lead(topic_id=TOPIC_ID, leader_epoch=1) == ErrorCode.NONE
    assert again.replicas.require(TOPIC, 0).topic_id == TOPIC_ID
    assert again.replicas.names_by_id == {TOPIC_ID: TOPIC}
    assert (tmp_path / "flights-0" / "partition.metadata").exists()


def test_a_log_on_an_offline_directory_is_not_created_elsewhere(
    tmp_path: Path,
) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    logs = open_directories(good, bad)
    logs.load(Surroundings().topic_config)
    broker = ToldBroker(logs)
    for index in range(2):
        broker.lead(index)
    (lost,) = [log.partition for log in logs if log.directory.path == str(bad)]
    broker.logs.close()
    bad.rename(tmp_path / "away")
    bad.write_text("the disk is gone")

    again = restarted(broker, good, bad)
    codes = {index: again.lead(index, is_new=False) for index in range(2)}

    assert codes == {lost: ErrorCode.KAFKA_STORAGE_ERROR, 1 - lost: ErrorCode.NONE}
    assert again.lead(2, is_new=True) == ErrorCode.NONE, "new partitions go where there is room"


def test_failing_disk_is_an_error_of_its_partition_alone(tmp_path: Path) -> None:
    logs = open_directories(tmp_path / "good", tmp_path / "bad")
    logs.load(Surroundings().topic_config)
    broker = ToldBroker(logs)
    for index in range(2):
        broker.lead(index)
    (lost,) = [log for log in logs if log.directory.path == str(tmp_path / "bad")]
    lost.directory.fail(OSError(5, "Input/output error"))

    codes = {index: broker.lead(index, leader_epoch=1) for index in range(2)}

    assert codes[lost.partition] == ErrorCode.KAFKA_STORAGE_ERROR
    assert codes[1 - lost.partition] == ErrorCode.NONE


def test_a_stop_of_an_earlier_leader_epoch_is_fenced(broker: ToldBroker) -> None:
    broker.lead(leader_epoch=3)
    assert broker.stop(delete=True, leader_epoch=2) is ErrorCode.FENCED_LEADER_EPOCH
    assert broker.replicas.partition(TOPIC, 0) is not None
    assert broker.stop(delete=False, leader_epoch=3) is ErrorCode.NONE
    assert broker.replicas.partition(TOPIC, 0) is None


@pytest.mark.parametrize("epoch", [-1, -2])
def test_a_stop_without_an_epoch_or_of_a_deleted_topic_is_not_fenced(
    broker: ToldBroker, epoch: int
) -> None:
    broker.lead(leader_epoch=3)
    assert broker.stop(delete=True, leader_epoch=epoch) is ErrorCode.NONE
    assert broker.replicas.partition(TOPIC, 0) is None


def test_a_replica_on_a_failed_disk_answers_kafka_storage_error(broker: ToldBroker) -> None:
    broker.lead(leader_epoch=3)
    partition = broker.replicas.partition(TOPIC, 0)
    assert partition is not None
    partition.log.directory.fail(OSError(5, "Input/output error"))
    assert broker.lead(leader_epoch=3) is ErrorCode.KAFKA_STORAGE_ERROR
    assert broker.lead(leader_epoch=4) is ErrorCode.KAFKA_STORAGE_ERROR
    assert broker.stop(delete=False) is ErrorCode.KAFKA_STORAGE_ERROR
    assert broker.replicas.partition(TOPIC, 0) is partition
