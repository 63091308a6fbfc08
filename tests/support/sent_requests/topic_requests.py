"""Requests about topics and their partitions. What administrators ask for is only validated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.messages.metadata import MetadataRequest
from protocol.messages.reassignment import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)
from protocol.messages.topic_partitions import DescribeTopicPartitionsRequest
from protocol.messages.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from tests.support.sent_requests.about import About, Maker

BY_ID_SINCE = 12
MAY_FORBID_SINCE = 4
DELETED_BY_ID_SINCE = 6


def metadata(about: About, version: int) -> MetadataRequest:
    """Ask for all topics, for some by name, by id where there are ids, or with permissions."""
    kind = MetadataRequest.Topic
    topics: list[MetadataRequest.Topic] | None = [kind(name=name) for name in about.topics]
    if about.is_form(1, 4):
        topics = None if version else []
    elif about.is_form(2, 4) and version >= BY_ID_SINCE:
        topics = [kind(name=None, topic_id=about.id_of(name)) for name in about.topics]
    return MetadataRequest(
        topics=topics,
        allow_auto_topic_creation=version < MAY_FORBID_SINCE or about.is_form(0, 3),
        include_cluster_authorized_operations=about.is_form(3, 4),
        include_topic_authorized_operations=about.is_form(3, 4),
    )


def describe_topic_partitions(about: About, _: int) -> DescribeTopicPartitionsRequest:
    """Describe some topics, or all."""
    kind = DescribeTopicPartitionsRequest.Topic
    topics = [] if about.is_form(1) else [kind(name=name) for name in about.topics]
    return DescribeTopicPartitionsRequest(topics=topics)


def create_topics(about: About, version: int) -> CreateTopicsRequest:
    """Create each topic, with one partition."""
    kind = CreateTopicsRequest.Topic
    return CreateTopicsRequest(
        topics=[
            kind(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[])
            for name in about.topics
        ],
        timeout_ms=30_000,
        validate_only=version > 0 and about.is_form(1),
    )


def delete_topics(about: About, version: int) -> DeleteTopicsRequest:
    """Delete each topic; in the other form by id."""
    if version < DELETED_BY_ID_SINCE:
        return DeleteTopicsRequest(topic_names=list(about.topics), timeout_ms=30_000)
    kind = DeleteTopicsRequest.Topic
    by_id = about.is_form(1)
    return DeleteTopicsRequest(
        topics=[
            kind(topic_id=about.id_of(name)) if by_id else kind(name=name, topic_id=ZERO_UUID)
            for name in about.topics
        ],
        timeout_ms=30_000,
    )


def create_partitions(about: About, _: int) -> CreatePartitionsRequest:
    """Validate three partitions for each topic."""
    kind = CreatePartitionsRequest.Topic
    return CreatePartitionsRequest(
        topics=[kind(name=name, count=3, assignments=None) for name in about.topics],
        timeout_ms=30_000,
        validate_only=True,
    )


def elect_leaders(about: About, _: int) -> ElectLeadersRequest:
    """The preferred leaders of each topic, which lead already."""
    kind = ElectLeadersRequest.TopicPartition
    return ElectLeadersRequest(
        topic_partitions=[kind(topic=name, partitions=[0]) for name in about.topics],
        timeout_ms=30_000,
    )


def alter_partition_reassignments(about: About, _: int) -> AlterPartitionReassignmentsRequest:
    """Cancel reassignments that were not begun."""
    kind = AlterPartitionReassignmentsRequest.Topic
    partitions = [kind.Partition(partition_index=0, replicas=None)]
    return AlterPartitionReassignmentsRequest(
        topics=[kind(name=name, partitions=partitions) for name in about.topics],
        timeout_ms=30_000,
    )


def list_partition_reassignments(_: About, __: int) -> ListPartitionReassignmentsRequest:
    """List all reassignments."""
    return ListPartitionReassignmentsRequest(topics=None, timeout_ms=30_000)


MAKERS: dict[ApiKey, Maker] = {
    ApiKey.METADATA: metadata,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: describe_topic_partitions,
    ApiKey.CREATE_TOPICS: create_topics,
    ApiKey.DELETE_TOPICS: delete_topics,
    ApiKey.CREATE_PARTITIONS: create_partitions,
    ApiKey.ELECT_LEADERS: elect_leaders,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: alter_partition_reassignments,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: list_partition_reassignments,
}
