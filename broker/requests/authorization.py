"""Authorization of the client of a request: the checks that handlers make.

Without an authorizer everything is allowed. `kafka.server.AuthHelper` is Apache's counterpart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.requests.api_table import ROUTES
from broker.security.audit_log import Asked
from protocol.acl_types import CLUSTER_NAME, AclOperation, ResourceType
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.requests.context import Context


def is_allowed(
    context: Context, operation: AclOperation, resource_type: ResourceType, name: str
) -> bool:
    """Return whether the client may do this to one resource."""
    broker = context.broker
    authorizer = broker.authorizer
    if authorizer is None:
        return True
    decision = authorizer.allows(
        context.principal, context.client_host, operation, resource_type, name
    )
    if not decision or broker.audit_log.tells_allowed:
        broker.audit_log.note(_asked(context), operation, resource_type, name, is_allowed=decision)
    return decision


def would_be_allowed(
    context: Context, operation: AclOperation, resource_type: ResourceType, name: str
) -> bool:
    """As `is_allowed`, without a line in the audit log (`Authorizer.would_allow`)."""
    authorizer = context.broker.authorizer
    return authorizer is None or authorizer.would_allow(
        context.principal, context.client_host, operation, resource_type, name
    )


def is_allowed_on_any(
    context: Context, operation: AclOperation, resource_type: ResourceType
) -> bool:
    """Return whether the client may do this to any resource there may be of the type (KIP-679)."""
    broker = context.broker
    authorizer = broker.authorizer
    if authorizer is None:
        return True
    decision = authorizer.allows_any(
        context.principal, context.client_host, operation, resource_type
    )
    if not decision or broker.audit_log.tells_allowed:
        broker.audit_log.note(_asked(context), operation, resource_type, None, is_allowed=decision)
    return decision


def is_allowed_on_topic(context: Context, operation: AclOperation, name: str) -> bool:
    """Return whether the client may do this to a topic."""
    return is_allowed(context, operation, ResourceType.TOPIC, name)


def would_be_allowed_on_topic(context: Context, operation: AclOperation, name: str) -> bool:
    """As `is_allowed_on_topic`, for lists of all topics."""
    return would_be_allowed(context, operation, ResourceType.TOPIC, name)


def is_allowed_on_group(context: Context, operation: AclOperation, group_id: str) -> bool:
    """Return whether the client may do this to a group."""
    return is_allowed(context, operation, ResourceType.GROUP, group_id)


def is_allowed_on_transaction(
    context: Context, operation: AclOperation, transactional_id: str
) -> bool:
    """Return whether the client may do this with a transactional id."""
    return is_allowed(context, operation, ResourceType.TRANSACTIONAL_ID, transactional_id)


def allowed(
    context: Context, operation: AclOperation, resource_type: ResourceType, names: Iterable[str]
) -> set[str]:
    """Names of the resources that the client may do this to."""
    if context.broker.authorizer is None:
        return set(names)
    return {name for name in set(names) if is_allowed(context, operation, resource_type, name)}


def is_allowed_on_cluster(context: Context, operation: AclOperation) -> bool:
    """Return whether the client may do this to the cluster."""
    return is_allowed(context, operation, ResourceType.CLUSTER, CLUSTER_NAME)


def would_be_allowed_on_cluster(context: Context, operation: AclOperation) -> bool:
    """As `is_allowed_on_cluster`, where something else would do as well."""
    return would_be_allowed(context, operation, ResourceType.CLUSTER, CLUSTER_NAME)


def may_create_topic(context: Context, name: str) -> bool:
    """Return whether the client may create a topic: on the cluster, or on topics of that name."""
    return would_be_allowed_on_cluster(context, AclOperation.CREATE) or is_allowed_on_topic(
        context, AclOperation.CREATE, name
    )


def require_on_cluster(context: Context, operation: AclOperation) -> None:
    """Raise CLUSTER_AUTHORIZATION_FAILED unless the client may do this to the cluster."""
    if not is_allowed_on_cluster(context, operation):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def _asked(context: Context) -> Asked:
    key = context.api_key
    request = ROUTES[key].request.__name__.removesuffix("Request") if key in ROUTES else str(key)
    return Asked(context.principal, context.client_host, request)
