"""Lists omit resources that a client may not describe, and a refused request has no effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.requests.authorized_operations import NOT_REQUESTED
from controller.topics.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from protocol.acl_types import CLUSTER_NAME, AclOperation, ResourceType
from protocol.errors import ErrorCode
from protocol.messages.cluster import DescribeClusterRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.groups import DescribeGroupsRequest, ListGroupsRequest
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from protocol.messages.offset_fetch import OffsetFetchRequest
from protocol.messages.producers import DescribeTransactionsRequest, ListTransactionsRequest
from protocol.messages.topic_partitions import DescribeTopicPartitionsRequest
from protocol.messages.topics import CreateTopicsRequest, DeleteTopicsRequest
from protocol.uuids import ZERO_UUID
from tests.broker.coordinators.transaction_broker import (
    FLIGHTS,
    PRODUCER,
    TransactionBroker,
    prepared,
    run_transaction_broker,
)
from tests.broker.handlers.one_broker import OneBroker, run_broker
from tests.broker.handlers.topics.test_create_topics import creation, new
from tests.support.broker_parts.allowing import PRINCIPAL, allowing
from tests.support.sent_requests.about import About
from tests.support.sent_requests.group_requests import offset_commit

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.broker_parts.allowing import Right

DESCRIBE = AclOperation.DESCRIBE
NOT_TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def on_topic(name: str, operation: AclOperation = DESCRIBE) -> Right:
    return ResourceType.TOPIC, name, operation


def on_cluster(operation: AclOperation) -> Right:
    return ResourceType.CLUSTER, CLUSTER_NAME, operation


def bits(*operations: AclOperation) -> int:
    return sum(1 << operation for operation in operations)


def of_all(**fields: bool) -> MetadataRequest:
    return MetadataRequest(topics=None, allow_auto_topic_creation=False, **fields)


def of_topic(name: str, *, creates: bool = False) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequest.Topic(name=name)], allow_auto_topic_creation=creates
    )


def shown(response: MetadataResponse) -> dict[str | None, int]:
    return {topic.name: topic.error_code for topic in response.topics}


def test_metadata_of_all_topics_lists_only_describable_topics(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        for name in ("flights", "hotels", "cars"):
            await broker.ask(creation(new(name)), 7)
        broker.services.authorizer = allowing(
            on_topic("flights"), on_topic("hotels", AclOperation.READ)
        )
        assert shown(await broker.ask(of_all(), 12)) == {"flights": 0, "hotels": 0}
        described = await broker.ask(DescribeTopicPartitionsRequest(topics=[]), 0)
        assert [topic.name for topic in described.topics] == ["flights", "hotels"]

    run_broker(tmp_path, scenario)


def test_cached_metadata_is_not_shared_between_clients_with_other_rights(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("flights", 200)), 7)
        await broker.ask(creation(new("hotels", 200)), 7)
        assert set(shown(await broker.ask(of_all(), 12))) == {"flights", "hotels"}
        broker.services.authorizer = allowing(on_topic("flights"))
        assert set(shown(await broker.ask(of_all(), 12))) == {"flights"}
        assert set(shown(await broker.ask(of_all(), 12))) == {"flights"}
        broker.services.authorizer = allowing(on_topic("hotels"))
        assert set(shown(await broker.ask(of_all(), 12))) == {"hotels"}
        assert shown(await broker.ask(of_topic("flights"), 12)) == {"flights": NOT_TOPIC}
        broker.services.authorizer = allowing(on_topic("flights"), principal="User:B")
        assert shown(await broker.ask(of_all(), 12)) == {}
        broker.services.authorizer = None
        assert set(shown(await broker.ask(of_all(), 12))) == {"flights", "hotels"}

    run_broker(tmp_path, scenario)


def test_metadata_made_in_slices_is_not_shared_between_clients_with_other_rights(
    tmp_path: Path,
) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("flights", 1100)), 7)
        await broker.ask(creation(new("hotels", 1100)), 7)
        for name in ("flights", "hotels"):
            broker.services.authorizer = allowing(on_topic(name))
            for _ in range(2):
                answer = await broker.ask(of_all(include_topic_authorized_operations=True), 12)
                assert shown(answer) == {name: 0}
                assert shown(await broker.ask(of_all(), 12)) == {name: 0}
                assert len(answer.topics[0].partitions) == 1100

    run_broker(tmp_path, scenario, max_new_partitions_per_request=2000)


def test_a_topic_that_may_not_be_described_is_refused_whether_it_exists_or_not(
    tmp_path: Path,
) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("flights")), 7)
        broker.services.authorizer = allowing()
        refused = [
            (await broker.ask(of_topic(name, creates=True), 12)).topics[0]
            for name in ("flights", "never")
        ]
        for topic in refused:
            topic.name = None
        assert refused[0] == refused[1]
        assert (refused[0].error_code, refused[0].topic_id) == (NOT_TOPIC, ZERO_UUID)

    run_broker(tmp_path, scenario)


def test_auto_topic_creation_needs_create(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        may_describe = (on_topic("flights"), on_topic("hotels"))
        broker.services.authorizer = allowing(*may_describe)
        answer = await broker.ask(of_topic("flights", creates=True), 12)
        assert shown(answer) == {"flights": NOT_TOPIC}
        broker.services.authorizer = allowing(
            *may_describe, on_topic("hotels", AclOperation.CREATE)
        )
        answer = await broker.ask(of_topic("hotels", creates=True), 12)
        assert shown(answer) == {"hotels": ErrorCode.LEADER_NOT_AVAILABLE}
        await broker.metadata.wait_until(lambda: broker.metadata.topic("hotels") is not None)
        assert broker.metadata.topic("flights") is None

    run_broker(tmp_path, scenario)


def test_authorised_operations_are_those_of_the_client(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("flights")), 7)
        broker.services.authorizer = allowing(
            on_topic("flights", AclOperation.WRITE), on_cluster(DESCRIBE)
        )
        request = of_all(
            include_topic_authorized_operations=True, include_cluster_authorized_operations=True
        )
        answer = await broker.ask(request, 9)
        assert answer.topics[0].topic_authorized_operations == bits(AclOperation.WRITE, DESCRIBE)
        assert answer.cluster_authorized_operations == bits(DESCRIBE)
        described = await broker.ask(DescribeTopicPartitionsRequest(topics=[]), 0)
        assert described.topics[0].topic_authorized_operations == bits(AclOperation.WRITE, DESCRIBE)

    run_broker(tmp_path, scenario)


def test_authorized_cluster_operations_are_empty_without_describe(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        broker.services.authorizer = allowing(on_cluster(AclOperation.CREATE))
        for wanted, told in ((True, 0), (False, NOT_REQUESTED)):
            request = DescribeClusterRequest(include_cluster_authorized_operations=wanted)
            answer = await broker.ask(request, 1)
            assert (answer.error_code, answer.cluster_authorized_operations) == (0, told)
            assert answer.brokers

    run_broker(tmp_path, scenario)


def test_find_coordinator_without_rights_creates_no_internal_topic(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        broker.services.authorizer = allowing()
        for key_type, code in (
            (0, ErrorCode.GROUP_AUTHORIZATION_FAILED),
            (1, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ):
            request = FindCoordinatorRequest(coordinator_keys=["a", "b"], key_type=key_type)
            answer = await broker.ask(request, 4)
            assert [found.error_code for found in answer.coordinators] == [code, code]
        assert broker.metadata.topic(GROUP_METADATA_TOPIC) is None
        assert broker.metadata.topic(TRANSACTION_STATE_TOPIC) is None

    run_broker(tmp_path, scenario)


def test_groups_that_may_not_be_described_are_not_listed(tmp_path: Path) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        await broker.find_coordinator()
        await broker.create_topic("flights")
        for name in ("readers", "writers"):
            await broker.ask(offset_commit(About(("flights",), name, ""), 8), 8)

        async def listed() -> set[str]:
            return {each.group_id for each in (await broker.ask(ListGroupsRequest(), 4)).groups}

        broker.services.authorizer = allowing((ResourceType.GROUP, "readers", AclOperation.READ))
        assert await listed() == {"readers"}
        request = DescribeGroupsRequest(
            groups=["readers", "writers"], include_authorized_operations=True
        )
        readers, writers = (await broker.ask(request, 5)).groups
        assert readers.authorized_operations == bits(AclOperation.READ, DESCRIBE)
        assert writers.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert writers.authorized_operations == NOT_REQUESTED
        broker.services.authorizer = allowing(on_cluster(DESCRIBE))
        assert await listed() == {"readers", "writers"}

    run_transaction_broker(tmp_path, scenario)


def test_positions_in_topics_that_may_not_be_described_are_not_shown(tmp_path: Path) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        await broker.find_coordinator()
        for name in ("flights", "hotels"):
            await broker.create_topic(name)
        await broker.ask(offset_commit(About(("flights", "hotels"), "readers", ""), 8), 8)
        broker.services.authorizer = allowing(
            (ResourceType.GROUP, "readers", DESCRIBE), on_topic("hotels")
        )
        kind = OffsetFetchRequest.Topic
        named = [kind(name=name, partition_indexes=[0]) for name in ("flights", "hotels")]
        answer = await broker.ask(OffsetFetchRequest(group_id="readers", topics=named), 7)
        assert [
            (topic.name, topic.partitions[0].committed_offset, topic.partitions[0].error_code)
            for topic in answer.topics
        ] == [("flights", -1, NOT_TOPIC), ("hotels", 1, 0)]
        answer = await broker.ask(OffsetFetchRequest(group_id="readers", topics=None), 7)
        assert [topic.name for topic in answer.topics] == ["hotels"]

    run_transaction_broker(tmp_path, scenario)


def test_transactions_are_listed_and_described_as_far_as_they_may_be_seen(tmp_path: Path) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        producer = await prepared(broker)
        await broker.add(producer, FLIGHTS, ("hotels", 0))
        listing = ListTransactionsRequest(state_filters=[], producer_id_filters=[])
        broker.services.authorizer = allowing()
        assert (await broker.ask(listing, 0)).transaction_states == []
        broker.services.authorizer = allowing(
            (ResourceType.TRANSACTIONAL_ID, PRODUCER, DESCRIBE), on_topic("hotels")
        )
        (listed,) = (await broker.ask(listing, 0)).transaction_states
        assert listed.transactional_id == PRODUCER
        request = DescribeTransactionsRequest(transactional_ids=[PRODUCER])
        (described,) = (await broker.ask(request, 0)).transaction_states
        assert [topic.topic for topic in described.topics] == ["hotels"]

    run_transaction_broker(tmp_path, scenario)


def test_clients_add_no_internal_topics_to_their_transactions(tmp_path: Path) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        producer = await prepared(broker)
        own = (GROUP_METADATA_TOPIC, 0)
        assert await broker.add(producer, FLIGHTS, own) == {
            FLIGHTS: ErrorCode.OPERATION_NOT_ATTEMPTED,
            own: NOT_TOPIC,
        }

    run_transaction_broker(tmp_path, scenario)


def test_create_topics_hides_configs_without_describe_configs(
    tmp_path: Path,
) -> None:
    async def scenario(broker: OneBroker) -> None:
        rights = (on_topic("flights", AclOperation.CREATE), on_topic("hotels", AclOperation.CREATE))
        broker.services.authorizer = allowing(
            *rights, on_topic("hotels", AclOperation.DESCRIBE_CONFIGS)
        )
        request: CreateTopicsRequest = creation(new("flights", 2), new("hotels", 2), new("cars"))
        answer = await broker.ask(request, 7)
        flights, hotels, cars = sorted(
            answer.topics, key=lambda topic: ("flights", "hotels", "cars").index(topic.name)
        )
        assert (flights.error_code, flights.topic_config_error_code) == (0, NOT_TOPIC)
        assert (flights.num_partitions, flights.replication_factor) == (-1, -1)
        assert not flights.configs
        assert (hotels.error_code, hotels.topic_config_error_code) == (0, 0)
        assert (hotels.num_partitions, bool(hotels.configs)) == (2, True)
        assert cars.error_code == NOT_TOPIC
        assert broker.metadata.topic("cars") is None

    run_broker(tmp_path, scenario)


def test_the_name_of_a_topic_given_by_id_needs_describe(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        for name in ("flights", "hotels"):
            await broker.ask(creation(new(name)), 7)
        broker.services.authorizer = allowing(on_topic("hotels"))
        kind = DeleteTopicsRequest.Topic
        ids = [broker.metadata.topic_id(name) for name in ("flights", "hotels")]
        request = DeleteTopicsRequest(topics=[kind(topic_id=one) for one in ids], timeout_ms=1000)
        answer = await broker.ask(request, 6)
        assert [(topic.name, topic.error_code) for topic in answer.responses] == [
            (None, NOT_TOPIC),
            ("hotels", NOT_TOPIC),
        ]
        by_id = [MetadataRequest.Topic(name=None, topic_id=one) for one in ids]
        found = (await broker.ask(MetadataRequest(topics=by_id), 12)).topics
        assert [(topic.name, topic.topic_id, topic.error_code) for topic in found] == [
            (None, ids[0], NOT_TOPIC),
            ("hotels", ids[1], 0),
        ]

    run_broker(tmp_path, scenario)


def test_rights_of_another_principal_do_not_apply(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("flights")), 7)
        broker.services.authorizer = allowing(on_topic("flights"), principal="User:B")
        assert shown(await broker.ask(of_all(), 12)) == {}
        broker.services.authorizer = allowing(on_topic("flights"), principal=PRINCIPAL)
        assert shown(await broker.ask(of_all(), 12)) == {"flights": 0}

    run_broker(tmp_path, scenario)
