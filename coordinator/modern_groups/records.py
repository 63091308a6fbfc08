"""The records that groups of all kinds have, under other names and key types for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from coordinator.records import OffsetsRecord

if TYPE_CHECKING:
    from coordinator.records import KeyOfKind
    from protocol.schema import Coded


class GroupKeyClass(Protocol):
    """The class of a key of which a group has one."""

    def __call__(self, *, group_id: str) -> KeyOfKind:
        """The key."""


class MemberKeyClass(Protocol):
    """The class of a key of which each member has one."""

    def __call__(self, *, group_id: str, member_id: str) -> KeyOfKind:
        """The key."""


class TargetEpochClass(Protocol):
    """Class of the value with the epoch of the target assignment."""

    def __call__(self, *, assignment_epoch: int, assignment_timestamp: int) -> Coded:
        """The value."""


class RecordClasses(NamedTuple):
    """The classes that one kind has for them."""

    member_key: MemberKeyClass
    target_key: MemberKeyClass
    current_key: MemberKeyClass
    target_epoch_key: GroupKeyClass
    target_epoch_value: TargetEpochClass

    def target_epoch_record(self, group_id: str, epoch: int, now_ms: int) -> OffsetsRecord:
        """Store the epoch of the target assignment: it is complete."""
        value = self.target_epoch_value(assignment_epoch=epoch, assignment_timestamp=now_ms)
        return OffsetsRecord(self.target_epoch_key(group_id=group_id), value)

    def member_tombstones(self, group_id: str, member_id: str) -> list[OffsetsRecord]:
        """Forget a member, in the order in which replay lets go of it."""
        keys = (self.current_key, self.target_key, self.member_key)
        return [OffsetsRecord(key(group_id=group_id, member_id=member_id), None) for key in keys]
