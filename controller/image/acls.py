"""ACLs in the image, by id (KIP-801), and the changes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from controller.image.errors import ReplayError
from controller.image.map_delta import MapDelta
from protocol.metadata_log.security_records import AccessControlEntryRecord
from protocol.uuids import to_base64

if TYPE_CHECKING:
    from protocol.metadata_log.security_records import RemoveAccessControlEntryRecord


@dataclass(frozen=True, slots=True)
class AccessControlEntry:
    """One ACL; codes are those of `protocol.acl_types`."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

    def to_record(self, acl_id: UUID) -> AccessControlEntryRecord:
        """The record of a snapshot."""
        return AccessControlEntryRecord(
            id=acl_id,
            resource_type=self.resource_type,
            resource_name=self.resource_name,
            pattern_type=self.pattern_type,
            principal=self.principal,
            host=self.host,
            operation=self.operation,
            permission_type=self.permission_type,
        )


class AclsDelta(MapDelta[UUID, AccessControlEntry]):
    """Changes of ACLs, by id."""

    __slots__ = ()

    def add(self, record: AccessControlEntryRecord) -> None:
        """Replay AccessControlEntryRecord."""
        entry = AccessControlEntry(
            resource_type=record.resource_type,
            resource_name=record.resource_name,
            pattern_type=record.pattern_type,
            principal=record.principal,
            host=record.host,
            operation=record.operation,
            permission_type=record.permission_type,
        )
        self.set(record.id, entry)

    def drop(self, record: RemoveAccessControlEntryRecord) -> None:
        """Replay RemoveAccessControlEntryRecord."""
        if self.get(record.id) is None:
            shown = f"RemoveAccessControlEntryRecord of {to_base64(record.id)}"
            raise ReplayError(f"{shown}: no such ACL")
        self.remove(record.id)
