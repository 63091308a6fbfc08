"""A classic group: its members, their protocols, and its state.

It keeps its data consistent; `rebalance`, `join`, `sync` and `membership` decide.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from coordinator.groups.member import Member
from coordinator.groups.states import TRANSITIONS, GroupEvent, GroupState
from coordinator.groups.subscriptions import CONSUMER_PROTOCOL_TYPE, subscribed_topics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from coordinator.groups.member import Protocols
    from protocol.messages.consumer_offsets_records import GroupMetadataValue, MemberMetadata

NO_GENERATION: Final = -1
NO_MEMBER_ID: Final = ""
_UNREAD: Final[frozenset[str]] = frozenset({"\0unread"})


class ClassicGroup:
    """One group of a shard. A group that only stores offsets is one that stays EMPTY."""

    __slots__ = (
        "_subscribed",
        "_supported",
        "awaiting_join",
        "generation",
        "group_id",
        "has_new_member",
        "initial_delay_left_ms",
        "is_downgraded",
        "leader_id",
        "members",
        "pending_members",
        "pending_syncs",
        "protocol",
        "protocol_type",
        "state",
        "state_since_ms",
        "static_members",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.state_since_ms = -1
        """Time of the last state change; -1 if there was none."""
        self.generation = 0
        self.protocol_type: str | None = None
        """The protocol type of its members; None for a group that never had any."""
        self.protocol: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        """Member id by group instance id."""
        self.pending_members: dict[str, None] = {}
        """Ids that were assigned (KIP-394) and have not joined yet."""
        self.pending_syncs: dict[str, None] = {}
        """Members of this generation that have not sent SyncGroup yet."""
        self.awaiting_join = 0
        self.initial_delay_left_ms: int | None = None
        """During the initial delay: by how much it may still be extended, in milliseconds."""
        self.is_downgraded = False
        """True if its generation is that of the consumer group from which it was downgraded
        (`downgrade`)."""
        self.has_new_member = False
        """True if a member has joined since the initial delay was last started."""
        self._supported: dict[str, int] = {}
        self._subscribed: frozenset[str] | None = _UNREAD

    def enter(self, event: GroupEvent, now_ms: int) -> None:
        """Make the transition of `event`."""
        self.state = TRANSITIONS[self.state, event]
        self.state_since_ms = now_ms

    @property
    def is_vestigial(self) -> bool:
        """True if it has no record in the log and no member is about to join: it may be dropped."""
        return (
            self.state is GroupState.EMPTY
            and self.generation == 0
            and not self.members
            and not self.pending_members
        )

    @property
    def has_all_members_joined(self) -> bool:
        """True if the join phase can end before its timeout."""
        return self.awaiting_join == len(self.members) and not self.pending_members

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest of its members'."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    # Members

    def add_member(self, member: Member, protocol_type: str) -> None:
        """Add a member; the first one sets the protocol type and becomes leader."""
        assert member.member_id not in self.members
        if not self.members:
            self.protocol_type = protocol_type
        if member.group_instance_id is not None:
            assert member.group_instance_id not in self.static_members
            self.static_members[member.group_instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self.pending_members.pop(member.member_id, None)
        self._count_protocols(member, 1)
        self.awaiting_join += member.joining is not None

    def update_member(self, member: Member, protocols: Protocols) -> None:
        """Replace the member's protocols."""
        self._count_protocols(member, -1)
        member.protocols = protocols
        self._count_protocols(member, 1)

    def remove_member(self, member_id: str) -> Member | None:
        """Remove a member or pending member; the caller has answered its parked replies."""
        self.pending_members.pop(member_id, None)
        self.pending_syncs.pop(member_id, None)
        member = self.members.pop(member_id, None)
        if member is None:
            return None
        self._count_protocols(member, -1)
        self.awaiting_join -= member.joining is not None
        if member.group_instance_id is not None:
            del self.static_members[member.group_instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        return member

    def rename_static_member(self, instance_id: str, new_member_id: str) -> Member:
        """Give the place of a static member to its next incarnation."""
        old_member_id = self.static_members[instance_id]
        member = self.members.pop(old_member_id)
        member.member_id = new_member_id
        self.members[new_member_id] = member
        self.static_members[instance_id] = new_member_id
        if self.pending_syncs.pop(old_member_id, 0) is None:
            self.pending_syncs[new_member_id] = None
        if self.leader_id == old_member_id:
            self.leader_id = new_member_id
        return member

    def silent_members(self) -> Iterator[Member]:
        """Members that have not rejoined in this join phase."""
        return (member for member in self.members.values() if member.joining is None)

    def elect_leader_among_joined(self) -> bool:
        """Keep the leader if it has rejoined, else elect the first that has; False if none has."""
        leader = self.members.get(self.leader_id) if self.leader_id is not None else None
        if leader is not None and leader.joining is not None:
            return True
        joined = next((m for m in self.members.values() if m.joining is not None), None)
        if joined is None:
            return False
        self.leader_id = joined.member_id
        return True

    def restore(self, value: GroupMetadataValue) -> None:
        """Take on the generation of a record.

        Right after a rebalance the group is at that generation already, but for assignments and
        state. After a restart the records of a group are replayed in turn and the last one stays.
        """
        self.protocol_type = value.protocol_type or None
        self.protocol = value.protocol
        self.generation = value.generation
        stored = {each.member_id for each in value.members}
        for member_id in [known for known in self.members if known not in stored]:
            self.remove_member(member_id)
        for each in value.members:
            self._restore_member(each)
        self.leader_id = value.leader
        self.initial_delay_left_ms = None
        self.forget_topics()
        event = GroupEvent.ASSIGNED if value.members else GroupEvent.EMPTIED
        self.enter(event, value.current_state_timestamp)

    def _restore_member(self, stored: MemberMetadata) -> None:
        protocol = self.protocol or ""
        rebalance_timeout_ms = stored.rebalance_timeout
        if rebalance_timeout_ms < 0:
            rebalance_timeout_ms = stored.session_timeout
        member = self.members.get(stored.member_id)
        if member is None:
            member = Member(
                member_id=stored.member_id,
                group_instance_id=stored.group_instance_id,
                client_id=stored.client_id,
                client_host=stored.client_host,
                rebalance_timeout_ms=rebalance_timeout_ms,
                session_timeout_ms=stored.session_timeout,
                protocols=((protocol, stored.subscription),),
            )
            self.add_member(member, self.protocol_type or "")
        elif member.metadata_for(protocol) != stored.subscription:
            self.update_member(member, ((protocol, stored.subscription),))
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = stored.session_timeout
        member.assignment = stored.assignment

    # Protocols

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Return whether a member with these protocols is compatible with the current members."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        return self.protocol_type == protocol_type and any(
            self._supported.get(name, 0) == len(self.members) for name, _ in protocols
        )

    def select_protocol(self) -> str:
        """The protocol with most votes among those that every member supports."""
        size = len(self.members)
        candidates = {name for name, count in self._supported.items() if count == size}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return max(votes, key=votes.__getitem__)

    @property
    def topics(self) -> frozenset[str] | None:
        """Topics that the members of this generation subscribe to; None if unknown."""
        if self._subscribed is _UNREAD:
            self._subscribed = self._read_subscriptions()
        return self._subscribed

    def consumes(self, topic: str) -> bool:
        """Return whether a member subscribes to a topic; True if the metadata is opaque."""
        return self.topics is None or topic in self.topics

    def forget_topics(self) -> None:
        """Drop the parsed subscriptions: the generation has changed."""
        self._subscribed = _UNREAD

    def _read_subscriptions(self) -> frozenset[str] | None:
        if self.protocol_type != CONSUMER_PROTOCOL_TYPE:
            return None
        if not self.members:
            return frozenset()
        if self.protocol is None:
            return None
        every: set[str] = set()
        for member in self.members.values():
            topics = subscribed_topics(member.metadata_for(self.protocol))
            if topics is None:
                return None
            every |= topics
        return frozenset(every)

    def _count_protocols(self, member: Member, change: int) -> None:
        for name in {name for name, _ in member.protocols}:
            count = self._supported.get(name, 0) + change
            if count:
                self._supported[name] = count
            else:
                del self._supported[name]
