"""Authorization of look-ups, and the partitions that a complete answer needs.

The authorizer decides, and the audit log records it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from broker.security.audit_log import Asked
from broker.security.principal import user
from protocol.acl_types import AclOperation, ResourceType

if TYPE_CHECKING:
    from broker.partitions.partition import Partition
    from broker.requests.services import BrokerServices

ANONYMOUS: Final = "ANONYMOUS"
FORBIDDEN: Final = "403 Forbidden"


class RefusedError(Exception):
    """Refusal of a look-up, as a status of HTTP and a line."""

    def __init__(self, status: str, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


@dataclass(frozen=True, slots=True)
class TopicAccess:
    """Operation of a client at an address on a topic."""

    request: str
    """As the audit log names it."""
    address: str
    topic: str
    operation: AclOperation = AclOperation.READ


def require_access(services: BrokerServices, access: TopicAccess) -> None:
    """Raises RefusedError unless `key.index.user` may."""
    if services.authorizer is None:
        return
    principal = user(services.config.key_index_user or ANONYMOUS)
    asked = Asked(principal, f"/{access.address}", access.request)
    operation, kind, topic = access.operation, ResourceType.TOPIC, access.topic
    is_allowed = services.authorizer.allows(asked.principal, asked.host, operation, kind, topic)
    if not is_allowed or services.audit_log.tells_allowed:
        services.audit_log.note(asked, operation, kind, topic, is_allowed=is_allowed)
    if not is_allowed:
        text = f"{principal} may not {operation.name.lower()} {topic}"
        raise RefusedError(FORBIDDEN, text)


def require_whole(partition: Partition) -> None:
    """Raises RefusedError unless this broker leads it, and has all acknowledged records readable.

    A new leader does not before its high watermark has reached the start of its epoch: records in
    between, which an earlier leader may have acknowledged, must not be read yet.
    """
    name = f"{partition.topic}-{partition.index}"
    if not partition.is_leader:
        raise RefusedError("503 Service Unavailable", f"{name} has another leader now; try again")
    if partition.is_behind_its_epoch:
        text = f"{name} has a new leader, and what is committed is not known yet; try again"
        raise RefusedError("503 Service Unavailable", text)
