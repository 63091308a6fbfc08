"""Others are served while a request is handled that names one thing, or what is not, very often."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

import broker.handlers.brokers.describe_configs
from broker.handlers.brokers.config_resources import BROKER, TOPIC
from broker.handlers.groups.membership import MOST_PROTOCOLS
from broker.requests.steps import STEPS_AT_ONCE
from protocol.errors import ErrorCode
from protocol.messages.api_versions import UpdateFeaturesRequest
from protocol.messages.client_quotas import AlterClientQuotasRequest
from protocol.messages.cluster import DescribeQuorumRequest
from protocol.messages.configs import (
    AlterConfigsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.group_membership import JoinGroupRequest, LeaveGroupRequest
from protocol.messages.metadata import MetadataRequest
from protocol.messages.producers import DescribeProducersRequest
from protocol.messages.reassignment import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)
from protocol.messages.scram import AlterUserScramCredentialsRequest
from protocol.messages.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    WriteTxnMarkersRequest,
)
from protocol.uuids import ZERO_UUID
from tests.broker.coordinators.group_broker import GROUP, GroupBroker, run_group_broker
from tests.broker.handlers.test_long_admin_requests import turns_of_others
from tests.broker.handlers.topics.test_create_topics import creation, new

if TYPE_CHECKING:
    from pathlib import Path

    from protocol.schema import Request

MANY: Final = 5 * STEPS_AT_ONCE
NAMES: Final = [f"name-{number}" for number in range(MANY)]

Moves = AlterPartitionReassignmentsRequest.Topic
Described = DescribeQuorumRequest.Topic
Quota = AlterClientQuotasRequest.Entry


def alteration(**fields: Any) -> IncrementalAlterConfigsRequest:
    kind = IncrementalAlterConfigsRequest.Resource
    change = kind.Config(name="retention.ms", config_operation=0, value="5")
    resource = kind(resource_type=TOPIC, resource_name="none", configs=[change] * MANY)
    return IncrementalAlterConfigsRequest(resources=[resource], validate_only=True, **fields)


CASES: dict[str, tuple[Request, int]] = {
    "markers of topics": (
        WriteTxnMarkersRequest(
            markers=[
                WriteTxnMarkersRequest.Marker(
                    producer_id=1,
                    producer_epoch=0,
                    transaction_result=True,
                    topics=[WriteTxnMarkersRequest.Marker.Topic(name="none", partition_indexes=[])]
                    * MANY,
                    coordinator_epoch=0,
                )
            ]
        ),
        1,
    ),
    "partitions of a transaction": (
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="none",
            v3_and_below_producer_id=1,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name="none", partitions=list(range(20 * MANY)))
            ],
        ),
        3,
    ),
    "metadata of a topic": (
        MetadataRequest(
            topics=[MetadataRequest.Topic(name="none", topic_id=ZERO_UUID)] * 4 * MANY,
            allow_auto_topic_creation=False,
        ),
        12,
    ),
    "reassignments": (
        AlterPartitionReassignmentsRequest(
            topics=[
                Moves(
                    name="none",
                    partitions=[Moves.Partition(partition_index=0, replicas=None)] * MANY,
                )
            ]
        ),
        1,
    ),
    "reassignments of topics": (
        AlterPartitionReassignmentsRequest(topics=[Moves(name="none", partitions=[])] * MANY),
        1,
    ),
    "listed reassignments": (
        ListPartitionReassignmentsRequest(
            topics=[
                ListPartitionReassignmentsRequest.Topic(
                    name="none", partition_indexes=list(range(MANY))
                )
            ]
        ),
        0,
    ),
    "quorum": (
        DescribeQuorumRequest(
            topics=[
                Described(
                    topic_name="none", partitions=[Described.Partition(partition_index=0)] * MANY
                )
            ]
        ),
        2,
    ),
    "elections": (
        ElectLeadersRequest(
            topic_partitions=[
                ElectLeadersRequest.TopicPartition(topic="none", partitions=[0] * MANY)
            ]
        ),
        2,
    ),
    "elections that cannot be": (
        ElectLeadersRequest(
            election_type=7,
            topic_partitions=[
                ElectLeadersRequest.TopicPartition(topic="none", partitions=list(range(MANY)))
            ],
        ),
        2,
    ),
    "features": (
        UpdateFeaturesRequest(
            feature_updates=[
                UpdateFeaturesRequest.FeatureUpdate(feature="none", max_version_level=1)
            ]
            * MANY
        ),
        2,
    ),
    "credentials": (
        AlterUserScramCredentialsRequest(
            deletions=[AlterUserScramCredentialsRequest.Deletion(name="nobody", mechanism=1)]
            * MANY,
            upsertions=[],
        ),
        0,
    ),
    "quotas": (
        AlterClientQuotasRequest(entries=[Quota(entity=[], ops=[])] * MANY, validate_only=True),
        1,
    ),
    "producers": (
        DescribeProducersRequest(
            topics=[DescribeProducersRequest.Topic(name="none", partition_indexes=[])] * MANY
        ),
        0,
    ),
    "deleted topics": (DeleteTopicsRequest(topic_names=["none"] * MANY, timeout_ms=1), 5),
    "new topics": (
        creation(*[new("none")] * MANY),
        7,
    ),
    "growing topics": (
        CreatePartitionsRequest(
            topics=[CreatePartitionsRequest.Topic(name="none", count=2, assignments=None)] * MANY,
            timeout_ms=1,
            validate_only=True,
        ),
        3,
    ),
    "changed values": (alteration(), 1),
    "replaced configurations": (
        AlterConfigsRequest(
            resources=[
                AlterConfigsRequest.Resource(resource_type=TOPIC, resource_name="none", configs=[])
            ]
            * MANY,
            validate_only=True,
        ),
        2,
    ),
    "described configurations": (
        DescribeConfigsRequest(
            resources=[
                DescribeConfigsRequest.Resource(
                    resource_type=TOPIC, resource_name="none", configuration_keys=[]
                )
            ]
            * MANY
        ),
        4,
    ),
}


@pytest.mark.parametrize(("request_", "version"), CASES.values(), ids=CASES.keys())
def test_others_are_served_between_elements(
    request_: Request, version: int, tmp_path: Path
) -> None:
    async def scenario(broker: GroupBroker) -> None:
        assert await turns_of_others(broker, request_, version) >= MANY - STEPS_AT_ONCE

    run_group_broker(tmp_path, scenario)


def test_many_members_leave_in_slices(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.find_coordinator()
        member_id = await broker.stable_group()
        members = [LeaveGroupRequest.Member(member_id=name) for name in NAMES * 10]
        members[-1].member_id = member_id
        request = LeaveGroupRequest(group_id=GROUP, members=members)
        handled: list[int] = []
        (shard,) = {broker.services.groups.shard_for(GROUP)}
        leave = shard.groups.handle_leave

        def counting(group_id: str, some: Any, now_ms: int) -> Any:
            handled.append(len(some))
            return leave(group_id, some, now_ms)

        shard.groups.handle_leave = counting  # type: ignore[assignment,method-assign]
        answer = await broker.ask(request, 5)

        assert len(handled) == 50
        codes = [member.error_code for member in answer.members]
        assert [bool(code) for code in codes] == [True] * (len(members) - 1) + [False]

    run_group_broker(tmp_path, scenario)


def test_our_keys_are_not_looked_for_in_a_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of 300 keys would be compared with each of a million names."""
    module: Any = broker.handlers.brokers.describe_configs
    describe = module.describe_broker
    looked_in: list[Any] = []

    def noting(layers: Any, names: Any) -> Any:
        looked_in.append(names)
        return describe(layers, names)

    monkeypatch.setattr(module, "describe_broker", noting)
    resource = DescribeConfigsRequest.Resource(
        resource_type=BROKER, resource_name="0", configuration_keys=["broker.id", *NAMES, *NAMES]
    )

    async def scenario(broker: GroupBroker) -> None:
        answer = await broker.ask(DescribeConfigsRequest(resources=[resource]), 4)
        assert [config.name for config in answer.results[0].configs] == ["broker.id"]

    run_group_broker(tmp_path, scenario)
    assert isinstance(looked_in[0], dict)
    assert len(looked_in[0]) == MANY + 1


def test_member_with_thousands_of_protocols_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.find_coordinator()
        kind = JoinGroupRequest.Protocol
        protocols = [kind(name=f"protocol-{n}", metadata=b"") for n in range(MOST_PROTOCOLS + 1)]
        refused = await broker.join(protocols=protocols)
        assert refused.error_code == ErrorCode.INVALID_REQUEST
        taken = await broker.join(version=3, protocols=protocols[1:])
        assert taken.error_code == ErrorCode.NONE

    run_group_broker(tmp_path, scenario)


def test_more_values_than_there_are_keys_are_refused(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        values = [CreateTopicsRequest.Topic.Config(name=name, value="1") for name in NAMES * 3]
        topic = new("orders")
        topic.configs = values
        answer = await broker.ask(creation(topic), 7)
        assert answer.topics[0].error_code == ErrorCode.INVALID_CONFIG

        kind = IncrementalAlterConfigsRequest.Resource
        change = kind.Config(name="retention.ms", config_operation=0, value="5")
        resource = kind(resource_type=TOPIC, resource_name="orders", configs=[change] * 6000)
        alter = IncrementalAlterConfigsRequest(resources=[resource], validate_only=True)
        answer = await broker.ask(alter, 1)
        assert answer.responses[0].error_code == ErrorCode.INVALID_REQUEST

        parts = [Quota.Entity(entity_type=name, entity_name="x") for name in NAMES]
        quotas = AlterClientQuotasRequest(entries=[Quota(entity=parts, ops=[])], validate_only=True)
        answer = await broker.ask(quotas, 1)
        assert answer.entries[0].error_code == ErrorCode.INVALID_REQUEST

    run_group_broker(tmp_path, scenario)
