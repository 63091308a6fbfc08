"""Fetch sessions (KIP-227): the broker remembers a reader's partitions, so neither repeats them.

    request (id, epoch)     means
    (0, -1)                 no session, all partitions listed
    (any, 0)                close that session, all partitions listed; open a new one if it fits
    (id, -1)                close that session, all partitions listed, open none
    (id, n > 0)             next request of the session: only what changed is listed

A partition on which a follower has caught up *rests*: it is not read again until its log grows or
its leadership changes. So the cost of an idle partition does not depend on the rate of fetches.

An unknown id or an unexpected epoch is an error of the whole request; so is an epoch that was valid
on arrival, if the session has gone on before the response. Epochs wrap to 1. A session identifies
topics either by name (before v13) or by id, never both.

When all slots are taken, or all sessions together have too many partitions, `session_eviction`
chooses the session to evict: a consumer's before a follower's. A reader without a session, or whose
session grows too large, lists all its partitions in each request.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from broker.fetch.fetched_partition import UNSENT, FetchedPartition
from broker.fetch.follower_batching import FollowerBatching
from broker.fetch.session_eviction import NO_RANK, EvictionOrder
from broker.runtime.slices import at_once
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterator
    from uuid import UUID

    from protocol.messages.fetch import FetchRequest

NO_SESSION: Final = 0
FINAL_EPOCH: Final = -1
INITIAL_EPOCH: Final = 0
LAST_EPOCH: Final = 2**31 - 1
FIRST_VERSION_BY_ID: Final = 13
LONGEST_NAME: Final = 250
"""Characters that are kept of a name: one more than a topic's may have."""
LISTED_AT_ONCE: Final = 100
"""Partitions of a session that is made, changed or closed in steps: a tenth of a millisecond."""
CLOSED_AT_ONCE: Final = 1000
"""Partitions of a session that is closed without steps."""


class Waiting(Protocol):
    """A fetch that waits for more."""

    def look_again(self) -> None:
        """Look at the session's partitions soon: there are more that do not rest."""


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
        """True if a replica fetches: Apache Kafka calls its session privileged."""
        self.partitions = partitions
        self.active = dict.fromkeys(partitions.values())
        """Partitions that do not rest, in the order in which they are served next."""
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
        """Monotonic time of the follower's last fetch; `replication.followers.Presence`."""
        self.broker_epoch = UNSENT

    def served(self, partition: FetchedPartition) -> None:
        """Move a partition that got records to the end: the others come first next time."""
        if partition in self.active:
            del self.active[partition]
            self.active[partition] = None

    def list_again(self, key: tuple[str | UUID, int], partition: FetchedPartition) -> None:
        """Add a partition, or replace it: its fetch position has changed."""
        partition.rouse()
        self.partitions[key] = partition
        self.active[partition] = None

    def forget(self, key: tuple[str | UUID, int]) -> None:
        """Forget a partition that its reader has dropped."""
        partition = self.partitions.pop(key, None)
        if partition is not None:
            partition.rouse()
            del self.active[partition]

    def close(self) -> Iterator[None]:
        """Close the session; resting partitions are roused, and then freed, in the steps."""
        self.is_closed = True
        return _let_go(list(self.partitions.values()))

    def advance(self) -> None:
        """Expect the next epoch."""
        self.epoch = 1 if self.epoch == LAST_EPOCH else self.epoch + 1


class Opened:
    """Partitions and session of one request, for its response."""

    __slots__ = ("_epoch", "is_incremental", "partitions", "session")

    def __init__(
        self,
        partitions: Collection[FetchedPartition],
        session: FetchSession | None,
        *,
        is_incremental: bool,
    ) -> None:
        self.partitions = partitions
        """Partitions to read; of a session, the ones that do not rest, now and later."""
        self.session = session
        self.is_incremental = is_incremental
        self._epoch = 0 if session is None else session.epoch

    @property
    def is_empty(self) -> bool:
        """True if nothing is fetched at all."""
        return not self.partitions and (self.session is None or not self.session.partitions)

    @property
    def is_superseded(self) -> bool:
        """True if the session had a further request since: its reader has given this one up."""
        return self.session is not None and self.session.epoch != self._epoch

    @property
    def session_id(self) -> int:
        """Session id of the response; 0 without a session."""
        return self.session.identity if self.session is not None else NO_SESSION


class SessionLimits(NamedTuple):
    """Limits of the session cache."""

    slots: int
    """`max.incremental.fetch.session.cache.slots`."""
    partitions: int
    """`max.incremental.fetch.session.cache.partitions`: of all sessions together."""
    eviction_ms: int
    """Time for which a session is safe from eviction, and after which an unused one is not."""


class FetchSessions:
    """All sessions of a broker."""

    def __init__(
        self,
        limits: SessionLimits,
        draw_identity: Callable[[], int],
        later: Callable[[Iterator[None]], None] = at_once,
    ) -> None:
        """`draw_identity` gives random positive int32 numbers; `later` is `Leftovers.add`."""
        self._later = later
        self._slots = limits.slots
        self._most_partitions = limits.partitions
        self._draw_identity = draw_identity
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        """In the order in which they were used."""
        self._order = EvictionOrder(limits.eviction_ms)
        self.evicted_count = 0
        """Sessions that gave way to others so far."""

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, request: FetchRequest, version: int, now_ms: int) -> Opened:
        """Find or make the session of a request; raises ApiError for the whole of it."""
        is_by_id = version >= FIRST_VERSION_BY_ID
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            return self._open_anew(request, _listed(request, is_by_id=is_by_id), now_ms, is_by_id)
        session = self._continued(request, is_by_id=is_by_id)
        self._update(session, request)
        return self._gone_on(session, session.epoch, now_ms)

    def open_in_steps(
        self, request: FetchRequest, version: int, now_ms: int
    ) -> Generator[None, None, Opened]:
        """As `open`, for a request that names many partitions: others may be served in between."""
        is_by_id = version >= FIRST_VERSION_BY_ID
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            listed: dict[tuple[str | UUID, int], FetchedPartition] = {}
            yield from _list(request, listed, is_by_id=is_by_id)
            return self._open_anew(request, listed, now_ms, is_by_id)
        session = self._continued(request, is_by_id=is_by_id)
        epoch = session.epoch
        yield from self._update_in_steps(session, request)
        return self._gone_on(session, epoch, now_ms)

    def _open_anew(
        self,
        request: FetchRequest,
        partitions: dict[tuple[str | UUID, int], FetchedPartition],
        now_ms: int,
        is_by_id: bool,
    ) -> Opened:
        former = self._sessions.get(request.session_id)
        if former is not None:
            self._remove(former)
        session = None
        if request.session_epoch == INITIAL_EPOCH:
            session = self._create(request, partitions, now_ms, is_by_id=is_by_id)
        return Opened(list(partitions.values()), session, is_incremental=False)

    def _continued(self, request: FetchRequest, *, is_by_id: bool) -> FetchSession:
        """The session that a request goes on with, which then expects the next one."""
        session = self._sessions.get(request.session_id)
        if session is None:
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            raise ApiError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.is_by_id != is_by_id:
            raise ApiError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.advance()
        return session

    def _gone_on(self, session: FetchSession, epoch: int, now_ms: int) -> Opened:
        """Continue the session of the request, after others may have been served."""
        if session.is_closed:
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            raise ApiError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if not session.partitions:
            self._remove(session)
            return Opened([], None, is_incremental=False)
        session.last_used_ms = now_ms
        self._sessions.move_to_end(session.identity)
        self._order.note_use(session, now_ms)
        if self._order.partition_count > self._most_partitions and not self._make_room(
            0, now_ms, is_by_follower=session.is_by_follower
        ):
            self._remove(session)
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        return Opened(session.active.keys(), session, is_incremental=True)

    def give_up(self, session: FetchSession) -> None:
        """Drop a session that its reader has not been sent."""
        if self._sessions.get(session.identity) is session:
            self._remove(session)

    def _remove(self, session: FetchSession) -> None:
        del self._sessions[session.identity]
        self._order.forget(session)
        steps = session.close()
        (self._later if len(session.partitions) > CLOSED_AT_ONCE else at_once)(steps)

    def _make_room(self, added: int, now_ms: int, *, is_by_follower: bool) -> bool:
        """Evict sessions to make room for `added` partitions; return whether that was enough."""
        if added > self._most_partitions:
            return False
        while self._order.partition_count + added > self._most_partitions:
            evicted = next(iter(self._sessions.values()), None)
            if evicted is None or not self._order.is_stale(evicted, now_ms):
                identity = self._order.largest_consumer() if is_by_follower else None
                if identity is None:
                    return False
                evicted = self._sessions[identity]
            self._evict(evicted)
        return True

    def _evict(self, session: FetchSession) -> None:
        self._remove(session)
        self.evicted_count += 1

    def _has_room(self, size: int, now_ms: int, *, is_by_follower: bool) -> bool:
        """Return whether a session may be added; evicts another one for it if need be."""
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
        self._evict(evicted)
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
        size = len(partitions)
        if not self._make_room(size, now_ms, is_by_follower=is_by_follower):
            return None
        if not self._has_room(size, now_ms, is_by_follower=is_by_follower):
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
            name = forgotten.topic_id if session.is_by_id else forgotten.topic[:LONGEST_NAME]
            for index in forgotten.partitions:
                session.forget((name, index))
        known = session.partitions
        for key, fetched in _listed(request, is_by_id=session.is_by_id, known=known).items():
            session.list_again(key, fetched)

    @staticmethod
    def _update_in_steps(session: FetchSession, request: FetchRequest) -> Iterator[None]:
        for forgotten in request.forgotten_topics_data:
            name = forgotten.topic_id if session.is_by_id else forgotten.topic[:LONGEST_NAME]
            for number, index in enumerate(forgotten.partitions):
                session.forget((name, index))
                if number % LISTED_AT_ONCE == 0:
                    yield
            yield
        listed: dict[tuple[str | UUID, int], FetchedPartition] = {}
        yield from _list(request, listed, is_by_id=session.is_by_id, known=session.partitions)
        for number, (key, fetched) in enumerate(listed.items()):
            session.list_again(key, fetched)
            if number % LISTED_AT_ONCE == 0:
                yield


def _let_go(left: list[FetchedPartition]) -> Iterator[None]:
    """Rouse partitions, and then free them: their session, the only other holder, is gone."""
    for start in range(0, len(left), LISTED_AT_ONCE):
        for each in left[start : start + LISTED_AT_ONCE]:
            each.rouse()
        yield
    while left:
        del left[-LISTED_AT_ONCE:]
        yield


def _listed(
    request: FetchRequest,
    *,
    is_by_id: bool,
    known: dict[tuple[str | UUID, int], FetchedPartition] | None = None,
) -> dict[tuple[str | UUID, int], FetchedPartition]:
    """Partitions listed in a request, each once; known ones keep their last sent state."""
    listed: dict[tuple[str | UUID, int], FetchedPartition] = {}
    at_once(_list(request, listed, is_by_id=is_by_id, known=known))
    return listed


def _list(
    request: FetchRequest,
    listed: dict[tuple[str | UUID, int], FetchedPartition],
    *,
    is_by_id: bool,
    known: dict[tuple[str | UUID, int], FetchedPartition] | None = None,
) -> Iterator[None]:
    """`_listed`, in steps."""
    for topic in request.topics:
        topic_name = topic.topic[:LONGEST_NAME]
        name = topic.topic_id if is_by_id else topic_name
        for number, partition in enumerate(topic.partitions):
            if number % LISTED_AT_ONCE == LISTED_AT_ONCE - 1:
                yield
            key = (name, partition.partition)
            fetched = known.get(key) if known else None
            if fetched is None:
                fetched = FetchedPartition(topic_name, topic.topic_id, partition.partition)
            fetched.want(partition)
            listed[key] = fetched
        yield
