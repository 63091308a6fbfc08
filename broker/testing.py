"""A Kafka broker for tests: `from broker.testing import EmbeddedBroker, EmbeddedCluster, Produce`.

`docs/testing.md` shows how. Requests have the names of Kafka's protocol.
"""

from __future__ import annotations

from broker.embedded.async_broker import AsyncBroker
from broker.embedded.cluster.embedded_cluster import EmbeddedCluster
from broker.embedded.embedded_broker import EmbeddedBroker
from broker.embedded.errors import EmbeddedBrokerError, NotReachedError
from broker.embedded.faults.sent_requests import SentRequest
from broker.embedded.frameworks.kafka_container import KafkaContainer
from broker.embedded.frameworks.record_strategies import AnyRecord, any_record
from broker.embedded.frameworks.unittest_case import KafkaTestMixin
from broker.embedded.stored_records import StoredRecord
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest as ApiVersions
from protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest as ConsumerGroupHeartbeat,
)
from protocol.messages.fetch import FetchRequest as Fetch
from protocol.messages.find_coordinator import FindCoordinatorRequest as FindCoordinator
from protocol.messages.group_membership import HeartbeatRequest as Heartbeat
from protocol.messages.group_membership import JoinGroupRequest as JoinGroup
from protocol.messages.group_membership import LeaveGroupRequest as LeaveGroup
from protocol.messages.group_membership import SyncGroupRequest as SyncGroup
from protocol.messages.leader_epochs import OffsetForLeaderEpochRequest as OffsetForLeaderEpoch
from protocol.messages.list_offsets import ListOffsetsRequest as ListOffsets
from protocol.messages.metadata import MetadataRequest as Metadata
from protocol.messages.offset_commit import OffsetCommitRequest as OffsetCommit
from protocol.messages.offset_fetch import OffsetFetchRequest as OffsetFetch
from protocol.messages.produce import ProduceRequest as Produce
from protocol.messages.producer_ids import InitProducerIdRequest as InitProducerId
from protocol.messages.topics import CreateTopicsRequest as CreateTopics
from protocol.messages.topics import DeleteTopicsRequest as DeleteTopics
from protocol.messages.transactions import AddOffsetsToTxnRequest as AddOffsetsToTxn
from protocol.messages.transactions import AddPartitionsToTxnRequest as AddPartitionsToTxn
from protocol.messages.transactions import EndTxnRequest as EndTxn
from protocol.messages.txn_offset_commit import TxnOffsetCommitRequest as TxnOffsetCommit

__all__ = [
    "AddOffsetsToTxn",
    "AddPartitionsToTxn",
    "AnyRecord",
    "ApiVersions",
    "AsyncBroker",
    "ConsumerGroupHeartbeat",
    "CreateTopics",
    "DeleteTopics",
    "EmbeddedBroker",
    "EmbeddedBrokerError",
    "EmbeddedCluster",
    "EndTxn",
    "ErrorCode",
    "Fetch",
    "FindCoordinator",
    "Heartbeat",
    "InitProducerId",
    "JoinGroup",
    "KafkaContainer",
    "KafkaTestMixin",
    "LeaveGroup",
    "ListOffsets",
    "Metadata",
    "NotReachedError",
    "OffsetCommit",
    "OffsetFetch",
    "OffsetForLeaderEpoch",
    "Produce",
    "SentRequest",
    "StoredRecord",
    "SyncGroup",
    "TxnOffsetCommit",
    "any_record",
]
