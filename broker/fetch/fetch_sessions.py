"""Fetch sessions (KIP-227): the broker remembers what a reader fetches, so that neither repeats it.

    request (id, epoch)     means
    (0, -1)                 no session, all partitions listed
    (any, 0)                close that session, all partitions listed; open a new one if it fits
    (id, -1)                close that session, all partitions listed, open none
    (id, n > 0)             next request of the session: only what changed is listed

A partition of which a follower has all that there is *rests*: it is not looked at again until its
log grows or its leadership changes. So what an idle partition costs does not depend on how often it
is asked for.

An unknown id or an unexpected epoch is an error of the whole request; so is an epoch that was good
when the request came, if the session has gone on before its answer was made. Epochs wrap to 1. A
session speaks of topics either by name (before v13) or by id, never both.

When all slots are taken, `session_eviction` says who gives way: consumers to followers.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Protocol

from broker.fetch.follower_batching import FollowerBatching
from broker.fetch.session_eviction import NO_RANK, EvictionOrder
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from uuid import UUID

    from broker.replication.followers import Follower
    from protocol.messages.fetch import FetchRequest, FetchResponse

NO_SESSION: Final = 0
FINAL_EPOCH: Final = -1
INITIAL_EPOCH: Final = 0
LAST_EPOCH: Final = 2**31 - 1
FIRST_VERSION_BY_ID: Final = 13
UNSENT: Final = -1


class Waiting(Protocol):
    """A fetch that waits for more."""

    def look_again(self) -> None:
        """Look at the session's partitions soon: there are more that do not rest."""


class Growing(Protocol):
    """A partition, as far as it tells when to look at it again."""

    def watch_as_follower(self, watcher: FetchedPartition) -> None:
        """Call `watcher.check` when its log grows or its leadership changes."""

    def unwatch(self, watcher: FetchedPartition) -> None:
        """Do not, any more."""


class FetchedPartition:
    """What a reader wants of one partition, and what it was last told."""

    __slots__ = (
        "_follower",
        "_resting_on",
        "_session",
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
        self._resting_on: Growing | None = None
        self._follower: Follower | None = None
        self._session: FetchSession | None = None

    def rest(self, session: FetchSession, partition: Growing, follower: Follower) -> None:
        """Nothing is to be sent, and there will be nothing until `partition` calls `check`.

        In a session that was closed meanwhile nothing rests: nobody would ever rouse it.
        """
        if session.is_closed:
            return
        del session.active[self]
        self._session, self._resting_on, self._follower = session, partition, follower
        follower.rest(session)
        partition.watch_as_follower(self)

    def rouse(self) -> None:
        """Rest no more."""
        session, partition, follower = self._session, self._resting_on, self._follower
        if session is not None and partition is not None and follower is not None:
            self._session = self._resting_on = self._follower = None
            partition.unwatch(self)
            follower.rouse(session)
            session.active[self] = None

    def check(self) -> None:
        """The partition has grown, or its leadership has changed."""
        session = self._session
        self.rouse()
        if session is not None and session.waiting is not None:
            session.waiting.look_again()

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

    def is_news(self, answer: FetchResponse.Response.Partition) -> bool:
        """Whether the reader was not told this last time (KIP-227)."""
        return bool(
            answer.error_code
            or answer.records
            or answer.diverging_epoch.epoch >= 0
            or answer.preferred_read_replica >= 0
            or answer.high_watermark != self.sent_high_watermark
            or answer.log_start_offset != self.sent_log_start_offset
        )

    def note_sent(self, answer: FetchResponse.Response.Partition) -> bool:
        """Remember what the reader is told; returns whether it is news to it (KIP-227)."""
        if answer.error_code or answer.diverging_epoch.epoch >= 0:
            # It does something else first, and is told all this once it has.
            self.sent_high_watermark = UNSENT
            return True
        is_news = self.is_news(answer)
        self.sent_high_watermark = answer.high_watermark
        self.sent_log_start_offset = answer.log_start_offset
        return is_news


class FetchSession:
    """The partitions of one reader."""

    __slots__ = (
        *("active", "broker_epoch", "created_ms", "epoch", "fetched_ms", "identity"),
        *("is_by_follower", "is_by_id", "is_closed", "is_mature", "last_used_ms"),
        *("pace", "partitions", "rank", "waiting"),
    )

    def __init__(
        self,
        identity: int,
        partitions: dict[tuple[str | UUID, int], FetchedPartition],
        now_ms: int,
        *,
        is_by_id: bool,
        is_by_follower: bool,
    ) -> None:
        self.identity = identity
        self.is_by_id = is_by_id
        self.is_by_follower = is_by_follower
        """Whether a replica fetches: Apache Kafka calls its session privileged."""
        self.partitions = partitions
        self.active = dict.fromkeys(partitions.values())
        """Those that do not rest, in the order in which they are served next."""
        self.waiting: Waiting | None = None
        self.pace = FollowerBatching()
        self.epoch = 1
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.rank = NO_RANK
        """Its place, and whether it is mature, in `session_eviction`, which sets both."""
        self.is_mature = False
        self.is_closed = False
        self.fetched_ms = 0
        """When a follower fetched last, by a monotonic clock; `replication.followers.Presence`."""
        self.broker_epoch = UNSENT

    def served(self, partition: FetchedPartition) -> None:
        """It got records: the others come first next time."""
        if partition in self.active:
            del self.active[partition]
            self.active[partition] = None

    def list_again(self, key: tuple[str | UUID, int], partition: FetchedPartition) -> None:
        """The reader asks for another part of it, or for the first time."""
        partition.rouse()
        self.partitions[key] = partition
        self.active[partition] = None

    def forget(self, key: tuple[str | UUID, int]) -> None:
        """The reader does not want it any more."""
        partition = self.partitions.pop(key, None)
        if partition is not None:
            partition.rouse()
            del self.active[partition]

    def close(self) -> None:
        """Nobody asks any more."""
        self.is_closed = True
        for partition in self.partitions.values():
            partition.rouse()

    def advance(self) -> None:
        """Expect the next epoch."""
        self.epoch = 1 if self.epoch == LAST_EPOCH else self.epoch + 1


class Opened:
    """How one request shall be answered."""

    __slots__ = ("_epoch", "is_incremental", "partitions", "session")

    def __init__(
        self,
        partitions: Collection[FetchedPartition],
        session: FetchSession | None,
        *,
        is_incremental: bool,
    ) -> None:
        self.partitions = partitions
        """Those to look at; of a session, the ones that do not rest, now and later."""
        self.session = session
        self.is_incremental = is_incremental
        self._epoch = 0 if session is None else session.epoch

    @property
    def is_empty(self) -> bool:
        """Whether nothing is fetched at all."""
        return not self.partitions and (self.session is None or not self.session.partitions)

    @property
    def is_superseded(self) -> bool:
        """Whether the session had a further request since: its reader has given this one up."""
        return self.session is not None and self.session.epoch != self._epoch

    @property
    def session_id(self) -> int:
        """What the answer says; 0 when there is no session."""
        return self.session.identity if self.session is not None else NO_SESSION


class FetchSessions:
    """All sessions of a broker: at most `max.incremental.fetch.session.cache.slots`."""

    def __init__(self, slots: int, eviction_ms: int, draw_identity: Callable[[], int]) -> None:
        """`draw_identity` gives random positive int32 numbers."""
        self._slots = slots
        self._draw_identity = draw_identity
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        """In the order in which they were used."""
        self._order = EvictionOrder(eviction_ms)
        self.evicted_count = 0
        """Sessions that gave way to others so far."""

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, request: FetchRequest, version: int, now_ms: int) -> Opened:
        """Find or make the session of a request; raises ApiError for the whole of it."""
        is_by_id = version >= FIRST_VERSION_BY_ID
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            former = self._sessions.get(request.session_id)
            if former is not None:
                self._remove(former)
            partitions = _listed(request, is_by_id=is_by_id)
            session = None
            if request.session_epoch == INITIAL_EPOCH:
                session = self._create(request, partitions, now_ms, is_by_id=is_by_id)
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
            self._remove(session)
            return Opened([], None, is_incremental=False)
        session.advance()
        session.last_used_ms = now_ms
        self._sessions.move_to_end(session.identity)
        self._order.note_use(session, now_ms)
        return Opened(session.active.keys(), session, is_incremental=True)

    def give_up(self, session: FetchSession) -> None:
        """Drop a session that its reader is not told of."""
        if self._sessions.get(session.identity) is session:
            self._remove(session)

    def _remove(self, session: FetchSession) -> None:
        del self._sessions[session.identity]
        self._order.forget(session)
        session.close()

    def _has_room(self, size: int, now_ms: int, *, is_by_follower: bool) -> bool:
        """Whether a session may be added; one that has to give way to it is evicted."""
        if len(self._sessions) < self._slots:
            return True
        if not self._sessions:
            return False
        evicted = next(iter(self._sessions.values()))
        if not self._order.is_stale(evicted, now_ms):
            identity = self._order.first_below(size, is_by_follower=is_by_follower)
            if identity is None:
                return False
            evicted = self._sessions[identity]
        self._remove(evicted)
        self.evicted_count += 1
        return True

    def _create(
        self,
        request: FetchRequest,
        partitions: dict[tuple[str | UUID, int], FetchedPartition],
        now_ms: int,
        *,
        is_by_id: bool,
    ) -> FetchSession | None:
        is_by_follower = max(request.replica_id, request.replica_state.replica_id) >= 0
        if not self._has_room(len(partitions), now_ms, is_by_follower=is_by_follower):
            return None
        identity = self._draw_identity()
        while identity in self._sessions or identity == NO_SESSION:
            identity = self._draw_identity()
        session = self._sessions[identity] = FetchSession(
            identity, partitions, now_ms, is_by_id=is_by_id, is_by_follower=is_by_follower
        )
        self._order.note_use(session, now_ms)
        return session

    @staticmethod
    def _update(session: FetchSession, request: FetchRequest) -> None:
        for forgotten in request.forgotten_topics_data:
            name = forgotten.topic_id if session.is_by_id else forgotten.topic
            for index in forgotten.partitions:
                session.forget((name, index))
        listed = _listed(request, is_by_id=session.is_by_id, known=session.partitions)
        for key, fetched in listed.items():
            session.list_again(key, fetched)


def _listed(
    request: FetchRequest,
    *,
    is_by_id: bool,
    known: dict[tuple[str | UUID, int], FetchedPartition] | None = None,
) -> dict[tuple[str | UUID, int], FetchedPartition]:
    """The partitions that a request lists, each once; known ones keep what they were told."""
    listed: dict[tuple[str | UUID, int], FetchedPartition] = {}
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
