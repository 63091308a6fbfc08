"""Bit fields of the operations that a client may perform on a cluster, topic or group.

Bit n stands for the operation with code n (KIP-430). Without an authorizer every client may perform
all operations of the resource type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.requests.authorization import is_allowed_on_cluster, would_be_allowed
from protocol.acl_types import CLUSTER_NAME, AclOperation, ResourceType

if TYPE_CHECKING:
    from broker.requests.context import Context

NOT_REQUESTED = -(2**31)
"""The value of the field if the client did not request it."""
NONE = 0

SUPPORTED = {
    ResourceType.TOPIC: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        AclOperation.READ,
        AclOperation.DELETE,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        AclOperation.CREATE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
    ),
}
"""The operations there are on each type of resource that answers describe."""

ALL = {
    resource_type: sum(1 << operation for operation in operations)
    for resource_type, operations in SUPPORTED.items()
}


def authorized_operations(context: Context, resource_type: ResourceType, name: str) -> int:
    """The operations that the client may perform on one resource."""
    if context.broker.authorizer is None:
        return ALL[resource_type]
    return sum(
        1 << operation
        for operation in SUPPORTED[resource_type]
        if would_be_allowed(context, operation, resource_type, name)
    )


def topic_operations(context: Context, name: str, *, is_requested: bool) -> int:
    """The operations on a topic, if the client has requested them."""
    if not is_requested:
        return NOT_REQUESTED
    return authorized_operations(context, ResourceType.TOPIC, name)


def cluster_operations(context: Context, *, is_requested: bool) -> int:
    """The operations on the cluster, if the client has requested them; none without DESCRIBE."""
    if not is_requested:
        return NOT_REQUESTED
    if not is_allowed_on_cluster(context, AclOperation.DESCRIBE):
        return NONE
    return authorized_operations(context, ResourceType.CLUSTER, CLUSTER_NAME)
