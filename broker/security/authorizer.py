"""The port of authorization."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from protocol.acl_types import AclOperation, ResourceType


class Authorizer(Protocol):
    """Decides at once and from memory: handlers ask it for each partition."""

    def allows(
        self,
        principal: str,
        host: str,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
    ) -> bool:
        """Return whether a principal may do this to the resource of that name.

        `principal` is as `User:alice`, `host` the peer's address with a leading slash
        (`Context.client_host`).
        """

    def would_allow(
        self,
        principal: str,
        host: str,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
    ) -> bool:
        """As `allows`, without the audit log, for checks that are not requests.

        For authorised operations, for resources left out of a list, and for alternative
        permissions.
        """

    def allows_any(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        """Return whether there may be a resource of the type to which it may do this (KIP-679)."""
