"""The embedded store as a quorum of one, and the rights that its requests need."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from protocol.acl_types import CLUSTER_NAME, AclOperation, ResourceType
from protocol.errors import ApiError, ErrorCode
from protocol.messages.cluster import (
    AddRaftVoterRequest,
    DescribeQuorumRequest,
    RemoveRaftVoterRequest,
    UnregisterBrokerRequest,
    UnregisterControllerRequest,
)
from tests.broker.handlers.one_broker import OneBroker, run_broker
from tests.support.broker_parts.allowing import allowing

if TYPE_CHECKING:
    from pathlib import Path

    from protocol.schema import Request

Asked = DescribeQuorumRequest.Topic
VOTER = UUID(int=3)
QUORUM = DescribeQuorumRequest(
    topics=[
        Asked(
            topic_name="__cluster_metadata",
            partitions=[Asked.Partition(partition_index=0)],
        )
    ]
)
REQUESTS: list[tuple[Request, AclOperation]] = [
    (QUORUM, AclOperation.DESCRIBE),
    (
        AddRaftVoterRequest(
            cluster_id=None, timeout_ms=1, voter_id=1, voter_directory_id=VOTER, listeners=[]
        ),
        AclOperation.ALTER,
    ),
    (
        RemoveRaftVoterRequest(cluster_id=None, voter_id=1, voter_directory_id=VOTER),
        AclOperation.ALTER,
    ),
    (UnregisterBrokerRequest(broker_id=5), AclOperation.ALTER),
    (UnregisterControllerRequest(controller_id=5), AclOperation.ALTER),
]


def test_offsets_of_the_quorum_are_the_stores_transactions(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        ends = []
        for _ in range(2):
            partition = (await broker.ask(QUORUM, 2)).topics[0].partitions[0]
            (voter,) = partition.current_voters
            assert voter.log_end_offset == partition.high_watermark
            assert (partition.leader_id, voter.replica_id, partition.leader_epoch) == (0, 0, 1)
            ends.append(partition.high_watermark)
            await broker.store.create("/a-node-", None, sequence=True)
        assert ends[1] == ends[0] + 1

    run_broker(tmp_path, scenario)


def test_live_broker_that_is_taken_out_registers_again(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        before = await broker.store.get("/brokers/ids/0")
        answer = await broker.ask(UnregisterBrokerRequest(broker_id=0), 0)
        after = await broker.store.get("/brokers/ids/0")
        assert answer.error_code == ErrorCode.NONE
        assert after.ephemeral_owner == before.ephemeral_owner

    run_broker(tmp_path, scenario)


@pytest.mark.parametrize(("request_", "operation"), REQUESTS)
def test_quorum_requests_need_rights_on_the_cluster(
    tmp_path: Path, request_: Request, operation: AclOperation
) -> None:
    async def scenario(broker: OneBroker) -> None:
        refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        broker.services.authorizer = allowing()
        with pytest.raises(ApiError) as raised:
            await broker.ask(request_, 0)
        assert raised.value.code == refused
        broker.services.authorizer = allowing((ResourceType.CLUSTER, CLUSTER_NAME, operation))
        assert (await broker.ask(request_, 0)).error_code != refused

    run_broker(tmp_path, scenario)
