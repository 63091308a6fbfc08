"""The port of authorisation: who may do what."""

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
        """Whether a principal may do this to the resource of that name.

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
        """As `allows`, of what nobody has asked for: nothing for the audit log.

        For authorised operations, for what a list leaves out, and where another permission would
        do as well.
        """

    def allows_any(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        """Whether there may be a resource of the type to which it may do this (KIP-679)."""
