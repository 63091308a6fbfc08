"""Fetch sessions (KIP-227): the broker remembers what a reader fetches, so that neither repeats it.

    request (id, epoch)     means
    (0, -1)                 no session, all partitions listed
    (any, 0)                close that session, all partitions listed; open a new one if it fits
    (id, -1)                close that session, all partitions listed, open none
    (id, n > 0)             next request of the session: only what changed is listed

An unknown id or an unexpected epoch is an error of the whole request. Epochs wrap to 1. A session
speaks of topics either by name (before v13) or by id, never both.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from protocol.messages.fetch import FetchRequest

NO_SESSION = 0
FINAL_EPOCH = -1
INITIAL_EPOCH = 0
LAST_EPOCH = 2**31 - 1
FIRST_VERSION_BY_ID = 13
UNSENT = -1


class FetchedPartition:
    """What a reader wants of one partition, and what it was last told."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "index",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "sent_high_watermark",
        "sent_log_start_offset",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: str, topic_id: UUID, index: int) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.current_leader_epoch = UNSENT
        self.sent_high_watermark = UNSENT
        self.sent_log_start_offset = UNSENT

    def want(self, partition: FetchRequest.Topic.Partition) -> None:
        """Take over what the request says.

        In a new leader epoch the reader may have put the last answer aside, so it is told all anew.
        """
        if partition.current_leader_epoch != self.current_leader_epoch:
            self.sent_high_watermark = UNSENT
        self.fetch_offset = partition.fetch_offset
        self.max_bytes = partition.partition_max_bytes
        self.current_leader_epoch = partition.current_leader_epoch
        self.last_fetched_epoch = partition.last_fetched_epoch
        self.log_start_offset = partition.log_start_offset


class FetchSession:
    """The partitions of one reader, in the order in which they are served next."""

    __slots__ = ("epoch", "identity", "is_by_id", "last_used_ms", "partitions")

    def __init__(
        self,
        identity: int,
        *,
        is_by_id: bool,
        partitions: OrderedDict[tuple[str | UUID, int], FetchedPartition],
    ) -> None:
        self.identity = identity
        self.is_by_id = is_by_id
        self.partitions = partitions
        self.epoch = 1
        self.last_used_ms = 0

    def advance(self) -> None:
        """Expect the next epoch."""
        self.epoch = 1 if self.epoch == LAST_EPOCH else self.epoch + 1


class Opened:
    """How one request shall be answered."""

    __slots__ = ("is_incremental", "partitions", "session")

    def __init__(
        self,
        partitions: list[FetchedPartition],
        session: FetchSession | None,
        *,
        is_incremental: bool,
    ) -> None:
        self.partitions = partitions
        self.session = session
        self.is_incremental = is_incremental

    @property
    def session_id(self) -> int:
        """What the answer says; 0 when there is no session."""
        return self.session.identity if self.session is not None else NO_SESSION


class FetchSessions:
    """All sessions of a broker: at most `max.incremental.fetch.session.cache.slots`."""

    def __init__(self, slots: int, eviction_ms: int, draw_identity: Callable[[], int]) -> None:
        """`draw_identity` gives random positive int32 numbers."""
        self._slots = slots
        self._eviction_ms = eviction_ms
        self._draw_identity = draw_identity
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, request: FetchRequest, version: int, now_ms: int) -> Opened:
        """Find or make the session of a request; raises ApiError for the whole of it."""
        is_by_id = version >= FIRST_VERSION_BY_ID
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            partitions = _listed(request, is_by_id=is_by_id)
            session = None
            if request.session_epoch == INITIAL_EPOCH and partitions and self._has_room(now_ms):
                session = self._create(partitions, is_by_id=is_by_id, now_ms=now_ms)
            return Opened(list(partitions.values()), session, is_incremental=False)
        session = self._sessions.get(request.session_id)
        if session is None:
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            raise ApiError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.is_by_id != is_by_id:
            raise ApiError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        self._update(session, request)
        if not session.partitions:
            del self._sessions[session.identity]
            return Opened([], None, is_incremental=False)
        session.advance()
        session.last_used_ms = now_ms
        self._sessions.move_to_end(session.identity)
        return Opened(list(session.partitions.values()), session, is_incremental=True)

    def _has_room(self, now_ms: int) -> bool:
        """Whether a session may be added; one that rested for long is evicted for it."""
        if len(self._sessions) < self._slots:
            return True
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now_ms - oldest.last_used_ms < self._eviction_ms:
            return False
        del self._sessions[oldest.identity]
        return True

    def _create(
        self,
        partitions: OrderedDict[tuple[str | UUID, int], FetchedPartition],
        *,
        is_by_id: bool,
        now_ms: int,
    ) -> FetchSession:
        identity = self._draw_identity()
        while identity in self._sessions or identity == NO_SESSION:
            identity = self._draw_identity()
        session = FetchSession(identity, is_by_id=is_by_id, partitions=partitions)
        session.last_used_ms = now_ms
        self._sessions[identity] = session
        return session

    @staticmethod
    def _update(session: FetchSession, request: FetchRequest) -> None:
        partitions = session.partitions
        for forgotten in request.forgotten_topics_data:
            name = forgotten.topic_id if session.is_by_id else forgotten.topic
            for index in forgotten.partitions:
                partitions.pop((name, index), None)
        partitions.update(_listed(request, is_by_id=session.is_by_id, known=partitions))


def _listed(
    request: FetchRequest,
    *,
    is_by_id: bool,
    known: OrderedDict[tuple[str | UUID, int], FetchedPartition] | None = None,
) -> OrderedDict[tuple[str | UUID, int], FetchedPartition]:
    """The partitions that a request lists, each once; known ones keep what they were told."""
    listed: OrderedDict[tuple[str | UUID, int], FetchedPartition] = OrderedDict()
    for topic in request.topics:
        name = topic.topic_id if is_by_id else topic.topic
        for partition in topic.partitions:
            key = (name, partition.partition)
            fetched = known.get(key) if known else None
            if fetched is None:
                fetched = FetchedPartition(topic.topic, topic.topic_id, partition.partition)
            fetched.want(partition)
            listed[key] = fetched
    return listed
