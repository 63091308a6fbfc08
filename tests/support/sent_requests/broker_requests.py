"""Requests about brokers: their configurations and log directories, and those among brokers.

What would change something is only validated. Requests among brokers are of an old controller, or
of an old registration: who may send them is told so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.messages.alter_partition import AlterPartitionRequest
from protocol.messages.api_versions import UpdateFeaturesRequest
from protocol.messages.cluster import DescribeClusterRequest
from protocol.messages.configs import (
    AlterConfigsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)
from protocol.messages.controlled_shutdown import ControlledShutdownRequest
from protocol.messages.leader_and_isr import LeaderAndIsrRequest
from protocol.messages.log_dirs import AlterReplicaLogDirsRequest, DescribeLogDirsRequest
from protocol.messages.producer_ids import AllocateProducerIdsRequest
from protocol.messages.stop_replica import StopReplicaRequest
from protocol.messages.update_metadata import UpdateMetadataRequest

if TYPE_CHECKING:
    from tests.support.sent_requests.about import About, Maker

TOPIC, BROKER, GROUP = 2, 4, 32
THIS_BROKER = "0"
ANOTHER = 7
OLD_EPOCH = 0
KEY = "retention.ms"
SET = 0


def describe_configs(about: About, _: int) -> DescribeConfigsRequest:
    """Describe one key of each topic, and of the broker."""
    kind = DescribeConfigsRequest.Resource
    return DescribeConfigsRequest(
        resources=[
            *(
                kind(resource_type=TOPIC, resource_name=t, configuration_keys=[KEY])
                for t in about.topics
            ),
            kind(
                resource_type=BROKER, resource_name=THIS_BROKER, configuration_keys=["broker.rack"]
            ),
        ]
    )


def alter_configs(about: About, _: int) -> AlterConfigsRequest:
    """Alter one key of each topic."""
    kind = AlterConfigsRequest.Resource
    configs = [kind.Config(name=KEY, value="1000000")]
    return AlterConfigsRequest(
        resources=[
            kind(resource_type=TOPIC, resource_name=name, configs=configs) for name in about.topics
        ],
        validate_only=True,
    )


def incremental_alter_configs(about: About, _: int) -> IncrementalAlterConfigsRequest:
    """Alter one key of each topic, and of the broker."""
    kind = IncrementalAlterConfigsRequest.Resource
    of_topic = [kind.Config(name=KEY, config_operation=SET, value="1000000")]
    of_broker = [kind.Config(name="message.max.bytes", config_operation=SET, value="1000000")]
    return IncrementalAlterConfigsRequest(
        resources=[
            *(kind(resource_type=TOPIC, resource_name=t, configs=of_topic) for t in about.topics),
            kind(resource_type=BROKER, resource_name=THIS_BROKER, configs=of_broker),
        ],
        validate_only=True,
    )


def list_config_resources(_: About, version: int) -> ListConfigResourcesRequest:
    """Topics and brokers."""
    return ListConfigResourcesRequest(resource_types=[TOPIC, BROKER] if version else [])


def describe_log_dirs(about: About, _: int) -> DescribeLogDirsRequest:
    """The first partition of each topic."""
    kind = DescribeLogDirsRequest.Topic
    return DescribeLogDirsRequest(
        topics=[kind(topic=name, partitions=[0]) for name in about.topics]
    )


def alter_replica_log_dirs(about: About, _: int) -> AlterReplicaLogDirsRequest:
    """Move replicas to a directory that is none of the broker's."""
    kind = AlterReplicaLogDirsRequest.Dir
    topics = [kind.Topic(name=name, partitions=[0]) for name in about.topics]
    return AlterReplicaLogDirsRequest(dirs=[kind(path="/nowhere", topics=topics)])


def describe_cluster(about: About, _: int) -> DescribeClusterRequest:
    """The cluster, and what may be done to it."""
    return DescribeClusterRequest(include_cluster_authorized_operations=about.is_form(1))


def leader_and_isr(_: About, __: int) -> LeaderAndIsrRequest:
    """Name no partition."""
    return LeaderAndIsrRequest(controller_id=ANOTHER, controller_epoch=OLD_EPOCH, live_leaders=[])


def stop_replica(_: About, __: int) -> StopReplicaRequest:
    """Name no partition."""
    return StopReplicaRequest(controller_id=ANOTHER, controller_epoch=OLD_EPOCH)


def update_metadata(_: About, __: int) -> UpdateMetadataRequest:
    """Name no partition."""
    return UpdateMetadataRequest(controller_id=ANOTHER, controller_epoch=OLD_EPOCH, live_brokers=[])


def controlled_shutdown(_: About, __: int) -> ControlledShutdownRequest:
    """Shut down a nonexistent broker."""
    return ControlledShutdownRequest(broker_id=ANOTHER, broker_epoch=OLD_EPOCH)


def alter_partition(_: About, __: int) -> AlterPartitionRequest:
    """Propose for no partition, from a nonexistent broker."""
    return AlterPartitionRequest(broker_id=ANOTHER, broker_epoch=OLD_EPOCH, topics=[])


def allocate_producer_ids(_: About, __: int) -> AllocateProducerIdsRequest:
    """Allocate for a nonexistent broker."""
    return AllocateProducerIdsRequest(broker_id=ANOTHER, broker_epoch=OLD_EPOCH)


def update_features(_: About, __: int) -> UpdateFeaturesRequest:
    """A level that is finalised already."""
    wanted = UpdateFeaturesRequest.FeatureUpdate(feature="group.version", max_version_level=1)
    return UpdateFeaturesRequest(feature_updates=[wanted])


MAKERS: dict[ApiKey, Maker] = {
    ApiKey.DESCRIBE_CONFIGS: describe_configs,
    ApiKey.ALTER_CONFIGS: alter_configs,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: incremental_alter_configs,
    ApiKey.LIST_CONFIG_RESOURCES: list_config_resources,
    ApiKey.DESCRIBE_LOG_DIRS: describe_log_dirs,
    ApiKey.ALTER_REPLICA_LOG_DIRS: alter_replica_log_dirs,
    ApiKey.DESCRIBE_CLUSTER: describe_cluster,
    ApiKey.UPDATE_FEATURES: update_features,
}
"""Requests of clients."""

AMONG_BROKERS: dict[ApiKey, Maker] = {
    ApiKey.LEADER_AND_ISR: leader_and_isr,
    ApiKey.STOP_REPLICA: stop_replica,
    ApiKey.UPDATE_METADATA: update_metadata,
    ApiKey.CONTROLLED_SHUTDOWN: controlled_shutdown,
    ApiKey.ALTER_PARTITION: alter_partition,
    ApiKey.ALLOCATE_PRODUCER_IDS: allocate_producer_ids,
}
"""Requests of brokers and controllers, in clusters with ZooKeeper."""
