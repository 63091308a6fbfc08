"""What the client of a request may do: the questions that handlers ask the authorizer.

Without an authorizer everything is allowed. `kafka.server.AuthHelper` is Apache's counterpart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.acl_types import CLUSTER_NAME, AclOperation, ResourceType
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.requests.context import Context


def is_allowed(
    context: Context, operation: AclOperation, resource_type: ResourceType, name: str
) -> bool:
    """Whether the client may do this to one resource."""
    authorizer = context.broker.authorizer
    return authorizer is None or authorizer.allows(
        context.principal, context.client_host, operation, resource_type, name
    )


def allowed(
    context: Context, operation: AclOperation, resource_type: ResourceType, names: Iterable[str]
) -> set[str]:
    """Those of the names that the client may do this to."""
    if context.broker.authorizer is None:
        return set(names)
    return {name for name in set(names) if is_allowed(context, operation, resource_type, name)}


def is_allowed_on_cluster(context: Context, operation: AclOperation) -> bool:
    """Whether the client may do this to the cluster."""
    return is_allowed(context, operation, ResourceType.CLUSTER, CLUSTER_NAME)


def require_on_cluster(context: Context, operation: AclOperation) -> None:
    """Raise CLUSTER_AUTHORIZATION_FAILED unless the client may do this to the cluster."""
    if not is_allowed_on_cluster(context, operation):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
