"""Share sessions: the partitions that each member of a share group reads here, between requests.

A session is opened by a ShareFetch of epoch 0 and closed by epoch -1, or with its connection; each
request in between has the next epoch, so that none is applied twice. Records that its member has
acquired are released when it ends, unless the member itself opens a new one.

Source: `SharePartitionManager.newContext` and `ShareSessionCache` in Apache Kafka 4.3.1.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

OPENING_EPOCH: Final = 0
CLOSING_EPOCH: Final = -1
LAST_EPOCH: Final = 2**31 - 1
MOST_PARTITIONS: Final = 1_000_000
"""Partitions in all sessions: 200 MB. Fixed: ten times what the largest clusters have."""


class Member(NamedTuple):
    """A member of a share group."""

    group_id: str
    member_id: str


class TopicPartition(NamedTuple):
    """A partition as requests name it."""

    topic_id: UUID
    partition: int


class Client(Protocol):
    """The other end of a connection (`broker.network.client`)."""

    def on_disconnect(self, callback: Callable[[], None]) -> None:
        """Have `callback` called once the connection is lost."""
        ...


class ShareSession:
    """Partitions that one member reads."""

    __slots__ = ("client", "epoch", "is_open", "member", "partitions")

    def __init__(self, member: Member, client: Client | None) -> None:
        self.member = member
        self.partitions: OrderedDict[TopicPartition, None] = OrderedDict()
        """In the order in which they are read."""
        self.epoch = next_epoch(OPENING_EPOCH)
        """Epoch of the next request."""
        self.client = client
        self.is_open = True

    def served(self, partition: TopicPartition) -> None:
        """Records of it were sent: next time, others come first."""
        if partition in self.partitions:
            self.partitions.move_to_end(partition)

    def turn(self, most: int) -> list[TopicPartition]:
        """Partitions to read now, `most` at most: others come first each time."""
        partitions = self.partitions
        if len(partitions) > most:
            turn = list(islice(partitions, most))
            for one in turn:
                partitions.move_to_end(one)
            return turn
        turn = list(partitions)
        at = self.epoch % max(1, len(turn))
        return turn[at:] + turn[:at]


class ShareSessions:
    """All sessions of a broker: `group.share.max.share.sessions` at most."""

    def __init__(self, limit: int, on_end: Callable[[ShareSession], None]) -> None:
        """`on_end` is called for sessions that end with their connection."""
        self._limit = limit
        self._partition_count = 0
        self._on_end = on_end
        self._sessions: dict[Member, ShareSession] = {}
        self._by_group: Counter[str] = Counter()
        self._by_client: dict[Client, dict[Member, ShareSession]] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def has_group(self, group_id: str) -> bool:
        """Return whether any member of the group has a session."""
        return group_id in self._by_group

    def open(self, member: Member, client: Client | None) -> ShareSession:
        """A new session, of nothing yet, in place of the one that the member may have had.

        Raises ApiError SHARE_SESSION_LIMIT_REACHED; the old one has ended all the same.
        """
        old = self._sessions.get(member)
        if old is not None:
            self.remove(old)
        if len(self._sessions) >= self._limit:
            raise ApiError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        session = ShareSession(member, client)
        self._sessions[member] = session
        self._by_group[member.group_id] += 1
        if client is not None:
            self._note_client(client, session)
        return session

    def require(self, member: Member, epoch: int) -> ShareSession:
        """The session that a request belongs to; its epoch is taken, unless it is the last.

        Raises ApiError SHARE_SESSION_NOT_FOUND or INVALID_SHARE_SESSION_EPOCH.
        """
        session = self._sessions.get(member)
        if session is None:
            raise ApiError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        if epoch == CLOSING_EPOCH:
            return session
        if epoch != session.epoch:
            raise ApiError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session.epoch = next_epoch(epoch)
        return session

    def add(self, session: ShareSession, partition: TopicPartition) -> None:
        """Read this one too; one that does not exist counts, as it may only be unknown here.

        Raises ApiError SHARE_SESSION_LIMIT_REACHED, and SHARE_SESSION_NOT_FOUND if the session has
        ended: a long request adds in steps.
        """
        if not session.is_open:
            raise ApiError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        if partition in session.partitions:
            return
        if self._partition_count >= MOST_PARTITIONS:
            raise ApiError(ErrorCode.SHARE_SESSION_LIMIT_REACHED, "too many partitions in sessions")
        session.partitions[partition] = None
        self._partition_count += 1

    def forget(self, session: ShareSession, partition: TopicPartition) -> None:
        """Remove a partition from a session."""
        if session.is_open and partition in session.partitions:
            del session.partitions[partition]
            self._partition_count -= 1

    def remove(self, session: ShareSession) -> bool:
        """End a session; returns False if it has ended before."""
        member = session.member
        if self._sessions.get(member) is not session:
            return False
        session.is_open = False
        self._partition_count -= len(session.partitions)
        del self._sessions[member]
        self._by_group[member.group_id] -= 1
        if not self._by_group[member.group_id]:
            del self._by_group[member.group_id]
        if session.client is not None:
            self._by_client[session.client].pop(member, None)
        return True

    def _note_client(self, client: Client, session: ShareSession) -> None:
        theirs = self._by_client.get(client)
        if theirs is None:
            theirs = self._by_client[client] = {}
            client.on_disconnect(lambda: self._disconnected(client))
        theirs[session.member] = session

    def _disconnected(self, client: Client) -> None:
        for session in list(self._by_client.get(client, {}).values()):
            if self.remove(session):
                self._on_end(session)
        self._by_client.pop(client, None)


def next_epoch(epoch: int) -> int:
    """The epoch of the request after that one; from the last it goes on with 1."""
    return 1 if epoch == LAST_EPOCH else epoch + 1
