"""Kafka's codes of resource types in requests about configurations (`ConfigResource.Type`).

And the required operation to describe or alter them: for topics and groups on these, for brokers on
the cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.requests.authorization import is_allowed
from protocol.acl_types import CLUSTER_NAME, AclOperation, ResourceType
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from broker.requests.context import Context

TOPIC = 2
BROKER = 4
BROKER_LOGGER = 8
CLIENT_METRICS = 16
GROUP = 32

_OF_CLUSTER = (ResourceType.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
_ASKED_OF = {
    TOPIC: (ResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    GROUP: (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    BROKER: _OF_CLUSTER,
    BROKER_LOGGER: _OF_CLUSTER,
    CLIENT_METRICS: _OF_CLUSTER,
}
"""Resource that needs the operation, and the error if it is not allowed."""
TYPES = _ASKED_OF.keys()
"""All types that have configurations."""


def require_access(
    context: Context, operation: AclOperation, resource_type: int, name: str
) -> None:
    """Raise ApiError unless the client may describe, or alter, a configuration.

    INVALID_REQUEST if there is none of that type.
    """
    asked_of = _ASKED_OF.get(resource_type)
    if asked_of is None:
        raise no_configuration(resource_type)
    kind, code = asked_of
    asked = CLUSTER_NAME if kind is ResourceType.CLUSTER else name
    if not is_allowed(context, operation, kind, asked):
        raise ApiError(code)


def no_configuration(resource_type: int) -> ApiError:
    """The error for a type of resources that is not served."""
    return ApiError(
        ErrorCode.INVALID_REQUEST,
        f"Resources of type {resource_type} have no configuration here.",
    )
