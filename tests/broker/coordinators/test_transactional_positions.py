"""TxnOffsetCommit and markers on a broker: what a shard that loads or waits makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import broker.handlers.transactions.txn_offset_commit
import broker.handlers.transactions.write_txn_markers  # noqa: F401
from broker.coordinators.shard_runtime import Stage
from broker.coordinators.transactions import TransactionRules
from controller.topics.topic_names import GROUP_METADATA_TOPIC
from protocol.errors import ErrorCode
from protocol.messages.offset_fetch import OffsetFetchRequest
from protocol.messages.transactions import WriteTxnMarkersRequest
from protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.broker.coordinators.golden.test_golden import InMemory
from tests.broker.coordinators.group_broker import GROUP, GroupBroker, run_group_broker
from tests.broker.coordinators.loading import until_loaded
from tests.broker.handlers.transaction_registry import TransactionRegistry

if TYPE_CHECKING:
    from pathlib import Path

TOPIC = "orders"
PRODUCER_ID = 9


class PositionsBroker:
    """A broker with a group, in whose transactions positions are committed."""

    def __init__(self, broker: GroupBroker) -> None:
        self.broker = broker
        rules = TransactionRules(broker.config, broker.services.features)
        self.registry = TransactionRegistry(rules, broker.foundation.machine.background)
        broker.services.transactions = self.registry

    async def prepare(self) -> None:
        await self.broker.find_coordinator()
        await self.broker.create_topic(TOPIC)
        self.registry.partitions.add((GROUP_METADATA_TOPIC, self.index))

    @property
    def index(self) -> int:
        return self.broker.groups.partition_for(GROUP)

    async def commit(self, offset: int, version: int = 3, epoch: int = 0) -> ErrorCode:
        response = await self.broker.ask(commit_request(offset, epoch), version)
        return ErrorCode(response.topics[0].partitions[0].error_code)

    async def end(self, *, commits: bool = True, epoch: int = 0, coordinator: int = 0) -> ErrorCode:
        kind = WriteTxnMarkersRequest.Marker
        marker = kind(
            producer_id=PRODUCER_ID,
            producer_epoch=epoch,
            transaction_result=commits,
            topics=[kind.Topic(name=GROUP_METADATA_TOPIC, partition_indexes=[self.index])],
            coordinator_epoch=coordinator,
        )
        response = await self.broker.ask(WriteTxnMarkersRequest(markers=[marker]), 1)
        return ErrorCode(response.markers[0].topics[0].partitions[0].error_code)

    async def position(self, *, require_stable: bool = True) -> tuple[int, ErrorCode]:
        topic = OffsetFetchRequest.Group.Topic(name=TOPIC, partition_indexes=[0])
        group = OffsetFetchRequest.Group(group_id=GROUP, topics=[topic])
        request = OffsetFetchRequest(groups=[group], require_stable=require_stable)
        found = (await self.broker.ask(request, 8)).groups[0].topics[0].partitions[0]
        return found.committed_offset, ErrorCode(found.error_code)

    async def reload(self) -> None:
        """The coordinator of the group goes and comes again, with what is in the log."""
        partition = self.broker.replicas.require(GROUP_METADATA_TOPIC, self.index)
        self.broker.groups.partition_changed(partition, False)
        self.broker.groups.partition_changed(partition, True)
        await until_loaded(self.broker.groups)


def commit_request(offset: int, epoch: int = 0) -> TxnOffsetCommitRequest:
    kind = TxnOffsetCommitRequest.Topic
    position = kind.Partition(partition_index=0, committed_offset=offset, committed_metadata="note")
    return TxnOffsetCommitRequest(
        transactional_id="t",
        group_id=GROUP,
        producer_id=PRODUCER_ID,
        producer_epoch=epoch,
        topics=[kind(name=TOPIC, partitions=[position])],
    )


def run(directory: Path, scenario: Any) -> None:
    async def prepared(broker: GroupBroker) -> None:
        positions = PositionsBroker(broker)
        await positions.prepare()
        await scenario(positions)

    run_group_broker(directory, prepared)


@pytest.mark.parametrize("commits", [True, False])
def test_pending_position_outlives_its_coordinator(commits: bool, tmp_path: Path) -> None:
    async def scenario(broker: PositionsBroker) -> None:
        assert await broker.commit(5) is ErrorCode.NONE
        await broker.reload()
        assert await broker.position() == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        assert await broker.position(require_stable=False) == (-1, ErrorCode.NONE)

        assert await broker.end(commits=commits) is ErrorCode.NONE

        expected = (5 if commits else -1, ErrorCode.NONE)
        assert await broker.position() == expected
        await broker.reload()
        assert await broker.position() == expected

    run(tmp_path, scenario)


def test_coordinator_of_the_transaction_is_asked_for_the_first_position_only(
    tmp_path: Path,
) -> None:
    async def scenario(broker: PositionsBroker) -> None:
        place = (GROUP_METADATA_TOPIC, broker.index)
        broker.registry.partitions.clear()
        assert await broker.commit(5, 3) is ErrorCode.INVALID_TXN_STATE
        assert await broker.commit(5, 4) is ErrorCode.TRANSACTION_ABORTABLE
        assert await broker.commit(5, 5) is ErrorCode.NONE
        assert await broker.commit(6, 5) is ErrorCode.NONE

        asked = [question[3:] for question in broker.registry.questions]
        assert asked == [((place,), True), ((place,), True), ((place,), False)]

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("said", "version", "told"),
    [
        (ErrorCode.PRODUCER_FENCED, 5, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 3, ErrorCode.CONCURRENT_TRANSACTIONS),
        (ErrorCode.NETWORK_EXCEPTION, 3, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ErrorCode.NETWORK_EXCEPTION, 1, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_COORDINATOR, 3, ErrorCode.NOT_COORDINATOR),
    ],
)
def test_errors_of_the_transaction_coordinator_are_translated_by_version(
    said: ErrorCode, version: int, told: ErrorCode, tmp_path: Path
) -> None:
    async def scenario(broker: PositionsBroker) -> None:
        broker.registry.refusal = said
        assert await broker.commit(5, version) is told

    run(tmp_path, scenario)


def test_a_verification_answered_after_the_marker_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: PositionsBroker) -> None:
        broker.registry.is_slow = True
        peer = InMemory(broker.broker)
        await peer.send("commit", commit_request(5), 3)

        assert await broker.end(commits=False) is ErrorCode.NONE
        broker.registry.answer_all()

        response = await peer.wait("commit")
        assert response.topics[0].partitions[0].error_code == ErrorCode.INVALID_TXN_STATE
        assert await broker.position() == (-1, ErrorCode.NONE)

    run(tmp_path, scenario)


def test_marker_of_an_old_epoch_settles_nothing(tmp_path: Path) -> None:
    async def scenario(broker: PositionsBroker) -> None:
        assert await broker.end(epoch=2, coordinator=4) is ErrorCode.NONE
        assert await broker.commit(5, epoch=2) is ErrorCode.NONE

        assert await broker.end(epoch=1, coordinator=4) is ErrorCode.INVALID_PRODUCER_EPOCH
        fenced = ErrorCode.TRANSACTION_COORDINATOR_FENCED
        assert await broker.end(epoch=2, coordinator=3) is fenced

        assert await broker.position() == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)

    run(tmp_path, scenario)


def test_markers_and_txn_offset_commits_are_retriable_while_groups_load(tmp_path: Path) -> None:
    async def scenario(broker: PositionsBroker) -> None:
        shard = broker.broker.groups.shard_for(GROUP)
        shard.stage = Stage.LOADING

        assert await broker.end() is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert await broker.commit(5, 3) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert await broker.commit(5, 1) is ErrorCode.COORDINATOR_NOT_AVAILABLE

        shard.stage = Stage.ACTIVE
        assert await broker.commit(5, 1) is ErrorCode.NONE

    run(tmp_path, scenario)


def test_a_partition_that_a_marker_names_often_gets_it_once(tmp_path: Path) -> None:
    async def scenario(broker: PositionsBroker) -> None:
        kind = WriteTxnMarkersRequest.Marker
        marker = kind(
            producer_id=PRODUCER_ID,
            producer_epoch=0,
            transaction_result=True,
            topics=[kind.Topic(name=TOPIC, partition_indexes=[0, 0, 0])] * 3,
            coordinator_epoch=0,
        )

        response = await broker.broker.ask(WriteTxnMarkersRequest(markers=[marker]), 1)

        (topic,) = response.markers[0].topics
        assert [(one.partition_index, one.error_code) for one in topic.partitions] == [(0, 0)]
        assert broker.broker.replicas.require(TOPIC, 0).log.log_end_offset == 1

    run(tmp_path, scenario)
