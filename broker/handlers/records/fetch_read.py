"""One pass over the partitions of a fetch request, and the response built from it.

Record bytes are regions of log files: they are not read here. Partitions are served in the
request's order (in a session: those that got records move to the end) until `max_bytes` is used up;
the first batch of the first partition that has any is returned whatever its size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from broker.fetch.replica_selection import RACK_AWARE, follower_in_rack
from broker.handlers.records.current_leader import current_leader
from broker.handlers.records.delayed_fetch import ENOUGH_BYTES, READ_AT_ONCE
from broker.handlers.records.fetch_access import absence_of, access_of, check_codec
from broker.handlers.records.fetch_quota import most_bytes, throttled_response
from broker.replication.replica_machine import NO_EPOCH
from broker.requests.steps import in_slices
from protocol.errors import ApiError, ErrorCode
from protocol.messages.fetch import FetchRequest, FetchResponse

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from broker.fetch.fetch_sessions import FetchSession, Opened
    from broker.fetch.fetched_partition import FetchedPartition
    from broker.partitions.partition import Partition
    from broker.partitions.throttle import Throttle
    from broker.requests.context import Context
    from broker.requests.steps import Steps
    from broker.runtime.deferred import Deferred
    from storage.segment.slices import Slice

Answer = FetchResponse.Response.Partition
"""One partition's part of the answer."""
AbortedTransaction = FetchResponse.Response.Partition.AbortedTransaction

FIRST_VERSION_WITH_RACKS: Final = 11
FIRST_VERSION_WITH_LEADERS: Final = 16
LED_OTHERWISE: Final = {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH}
"""Errors of a reader with a wrong leader, answered with the right one (KIP-951)."""
READ_COMMITTED: Final = 1
NO_OFFSET: Final = -1
EMPTY: Final = b""

_Topics: TypeAlias = "dict[str | UUID, FetchResponse.Response]"
"""Topics of one response."""

# Shared by all answers, as new ones would double the cost of one; never changed in place.
_NOT_DIVERGING: Final = Answer.DivergingEpoch()
_NO_LEADER: Final = Answer.CurrentLeader()
_NO_SNAPSHOT: Final = Answer.SnapshotId()


class FetchRead:
    """One pass over the partitions of a request."""

    __slots__ = (
        *("_access", "_answers", "_bytes", "_context", "_endpoints", "_is_read_committed"),
        *("_limit", "_min_bytes", "_opened", "_rack", "_replica_id", "_request", "_throttled"),
        *("_was_noted", "is_by_follower", "is_urgent"),
    )

    def __init__(self, context: Context, request: FetchRequest, opened: Opened) -> None:
        self._context = context
        self._request = request
        self._opened = opened
        self._is_read_committed = request.isolation_level == READ_COMMITTED
        self._replica_id = max(request.replica_id, request.replica_state.replica_id)
        self.is_by_follower = self._replica_id >= 0
        self._access = access_of(context, is_by_follower=self.is_by_follower)
        self._limit = most_bytes(context, request.max_bytes, self.is_by_follower)
        self._min_bytes = min(request.min_bytes, self._limit)
        self._rack = self._rack_to_read_in() if request.rack_id else ""
        self._answers: list[tuple[FetchedPartition, Answer]] = []
        self._endpoints: dict[int, FetchResponse.NodeEndpoint] = {}
        """Of the leaders that answers name."""
        self._bytes = 0
        self._throttled: tuple[Throttle | None, int] = None, 0
        """Replication throttle of followers that are behind, and the number of these."""
        self._was_noted = False
        self.is_urgent = False
        """True if the response must not wait: it has an error, or a preferred read replica."""

    @property
    def session(self) -> FetchSession | None:
        """The session that it belongs to."""
        return self._opened.session

    @property
    def is_satisfied(self) -> bool:
        """True if the response is due."""
        return self.is_urgent or self._bytes >= self._min_bytes

    @property
    def may_be_held(self) -> bool:
        """True to wait for more all the same, for a follower that producers keep busy."""
        session = self._opened.session
        return (
            self.is_by_follower
            and session is not None
            and not self.is_urgent
            and self._bytes < ENOUGH_BYTES
            and session.pace.is_worthwhile()
        )

    def run(self) -> None:
        """Read all partitions again."""
        self._begin()
        try:
            self._read_some(tuple(self._opened.partitions))  # some come to rest
        finally:
            self._was_noted = True

    def run_in_steps(self) -> Steps[None]:
        """As `run`, pausing after each partition."""
        self._begin()
        try:
            for wanted in tuple(self._opened.partitions):
                self._read_some((wanted,))
                yield
        finally:
            self._was_noted = True

    def _begin(self) -> None:
        self._bytes = 0
        self._throttled = None, 0
        self.is_urgent = False
        self._answers = []

    def _read_some(self, some: Sequence[FetchedPartition]) -> None:
        access = self._access
        for wanted in some:
            try:
                if access is not None:
                    access.require(wanted)
                partition = self._find(wanted)
                if partition is not None and self._is_old_news(wanted, partition):
                    continue
                answer = self._read(wanted, partition)
            except ApiError as error:
                self.is_urgent = True
                answer = self._refused(wanted, error.code)
            self._answers.append((wanted, answer))

    def _refused(self, wanted: FetchedPartition, code: ErrorCode) -> Answer:
        answer = Answer(
            partition_index=wanted.index,
            error_code=code,
            high_watermark=NO_OFFSET,
            records=EMPTY,
            aborted_transactions=None,
        )
        if code in LED_OTHERWISE and self._context.api_version >= FIRST_VERSION_WITH_LEADERS:
            metadata = self._context.broker.metadata
            name = self._name(wanted) or metadata.topic_name(wanted.topic_id)
            leader, epoch, node = current_leader(self._context, name, wanted.index)
            answer.current_leader = Answer.CurrentLeader(leader_id=leader, leader_epoch=epoch)
            if node is not None and not self.is_by_follower:
                self._endpoints[node.id] = FetchResponse.NodeEndpoint(
                    node_id=node.id, host=node.host, port=node.port, rack=node.rack
                )
        return answer

    @property
    def is_large(self) -> bool:
        """True if it is read in steps; partitions at rest in a session do not count."""
        return len(self._opened.partitions) > READ_AT_ONCE

    def watched(self) -> Iterable[Partition]:
        """The partitions whose growth can satisfy the request."""
        return filter(None, map(self._find, tuple(self._opened.partitions)))

    def answered(self) -> FetchResponse | Deferred[FetchResponse]:
        """As `response`, or as `response_in_steps` if that takes long."""
        if len(self._answers) <= READ_AT_ONCE:
            return self.response()
        return in_slices(self._context, self.response_in_steps())

    def response(self) -> FetchResponse:
        """Partitions read; in an incremental session, only those that changed.

        An error if the session has gone on in between: it records what its reader knows, and must
        not record a response that came too late (`IncrementalFetchContext`).
        """
        response = self._empty_response()
        if not response.error_code and not response.throttle_time_ms:
            self._answer_some(self._answers, response, {})
        return response

    def response_in_steps(self) -> Steps[FetchResponse]:
        """As `response`, pausing after each partition."""
        response = self._empty_response()
        if not response.error_code and not response.throttle_time_ms:
            topics: _Topics = {}
            for answered in self._answers:
                self._answer_some((answered,), response, topics)
                yield
        return response

    def _empty_response(self) -> FetchResponse:
        opened = self._opened
        if opened.is_superseded:
            code = ErrorCode.INVALID_FETCH_SESSION_EPOCH
            return FetchResponse(error_code=code, session_id=opened.session_id, responses=[])
        meter = self._context.meter
        if meter is not None and not self.is_by_follower:
            throttled = throttled_response(meter, self._context, opened, self._answers)
            if throttled is not None:
                return throttled
        throttle, size = self._throttled
        if throttle is not None:
            throttle.record(size)
        response = FetchResponse(session_id=opened.session_id, responses=[])
        if self._endpoints:
            response.node_endpoints = list(self._endpoints.values())
        return response

    def _answer_some(
        self,
        some: Sequence[tuple[FetchedPartition, Answer]],
        response: FetchResponse,
        topics: _Topics,
    ) -> None:
        """Add the partitions with news, by topic."""
        opened = self._opened
        session = opened.session
        for wanted, answer in some:
            if session is not None:
                is_news = wanted.note_sent(answer)
                if opened.is_incremental and not is_news:
                    continue
                if answer.records:
                    session.served(wanted)
            name = wanted.topic or wanted.topic_id
            topic = topics.get(name)
            if topic is None:
                topic = topics[name] = FetchResponse.Response(
                    topic=wanted.topic, topic_id=wanted.topic_id, partitions=[]
                )
                response.responses.append(topic)
            topic.partitions.append(answer)

    def _find(self, wanted: FetchedPartition) -> Partition | None:
        replicas = self._context.broker.replicas
        name = wanted.topic or replicas.names_by_id.get(wanted.topic_id)
        if name is None:
            return None
        wanted.known_name = name
        return replicas.partition(name, wanted.index)

    def _name(self, wanted: FetchedPartition) -> str | None:
        return wanted.topic or self._context.broker.replicas.names_by_id.get(wanted.topic_id)

    def _is_old_news(self, wanted: FetchedPartition, partition: Partition) -> bool:
        """Return whether there is plainly nothing to send, as for most partitions most of the time.

        Equivalent to reading it and leaving it out of the response, but far cheaper.
        """
        log = partition.log
        high_watermark = log.high_watermark
        return (
            self._opened.is_incremental
            and high_watermark == wanted.sent_high_watermark
            and high_watermark <= wanted.fetch_offset <= log.log_end_offset
            and log.log_start_offset == wanted.sent_log_start_offset
            and partition.is_leader
            and wanted.current_leader_epoch in (NO_EPOCH, partition.leader_epoch)
            and wanted.last_fetched_epoch < 0 > self._replica_id
            and not self._rack
        )

    def _read(self, wanted: FetchedPartition, partition: Partition | None) -> Answer:
        if partition is None:
            raise ApiError(absence_of(self._context, wanted))
        partition.check_epoch(wanted.current_leader_epoch)
        if self._replica_id >= 0 or self._context.api_version < FIRST_VERSION_WITH_RACKS:
            partition.check_leads()
            check_codec(partition, self._context.api_version, is_by_follower=self.is_by_follower)
        log = partition.log
        answer = Answer(
            partition_index=wanted.index,
            error_code=0,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=[] if self._is_read_committed else None,
            records=EMPTY,
            diverging_epoch=_NOT_DIVERGING,
            current_leader=_NO_LEADER,
            snapshot_id=_NO_SNAPSHOT,
        )
        if self._rack and self._is_sent_on(wanted, partition, answer):
            return answer
        if wanted.last_fetched_epoch >= 0 and self._diverges(wanted, partition, answer):
            return answer
        piece = self._slice(wanted, partition)
        if self.is_by_follower:
            if not self._was_noted:
                self._note_follower(wanted, partition)
            if piece is None:
                self._let_rest(wanted, partition)
        if piece is not None:
            self._bytes += piece.length
            answer.records = piece
            if self._is_read_committed:
                answer.aborted_transactions = [
                    AbortedTransaction(
                        producer_id=aborted.producer_id, first_offset=aborted.first_offset
                    )
                    for aborted in log.reader.aborted_in(piece, wanted.fetch_offset)
                ]
        return answer

    def _rack_to_read_in(self) -> str:
        """Rack of the consumer, if it may be sent to a replica in it; else ""."""
        is_consumer = self._replica_id < 0
        is_wanted = is_consumer and self._context.broker.config.replica_selector_class == RACK_AWARE
        return self._request.rack_id if is_wanted else ""

    def _is_sent_on(self, wanted: FetchedPartition, partition: Partition, answer: Answer) -> bool:
        """Send a consumer to a better replica, instead of reading for it (KIP-392)."""
        if not partition.is_leader:
            return False
        follower = follower_in_rack(partition, self._rack, wanted.fetch_offset, self._rack_of)
        if follower is None:
            return False
        answer.preferred_read_replica = follower
        self.is_urgent = True
        return True

    def _rack_of(self, broker_id: int) -> str | None:
        node = self._context.broker.metadata.node(broker_id, self._context.listener)
        return None if node is None else node.rack

    def _note_follower(self, wanted: FetchedPartition, partition: Partition) -> None:
        """A follower's offset says how far it is; but only when it asks, not when we look."""
        partition.fetched_by(
            self._replica_id,
            self._request.replica_state.replica_epoch,
            wanted.fetch_offset,
            wanted.log_start_offset,
        )

    def _let_rest(self, wanted: FetchedPartition, partition: Partition) -> None:
        """Rest a partition that is committed to its end, with a follower that has everything."""
        log = partition.log
        in_sync = partition.machine.in_sync
        session = self._opened.session
        if (
            session is not None
            and wanted.fetch_offset == log.log_end_offset == log.high_watermark
            and wanted.sent_high_watermark == log.high_watermark
            and wanted.sent_log_start_offset == log.log_start_offset
            and self._replica_id in in_sync.committed
        ):
            wanted.rest(session, partition, in_sync.followers[self._replica_id])

    def _slice(self, wanted: FetchedPartition, partition: Partition) -> Slice | None:
        if self._replica_id >= 0:
            end = partition.log.log_end_offset
        else:
            end = partition.readable_end(is_read_committed=self._is_read_committed)
        room, is_first = min(wanted.max_bytes, self._limit - self._bytes), self._bytes == 0
        log = partition.log
        if not log.log_start_offset <= wanted.fetch_offset <= log.log_end_offset:
            raise log.reader.out_of_range(wanted.fetch_offset)
        if wanted.fetch_offset >= end or (room <= 0 and not is_first):
            return None
        throttle = partition.throttle if self._replica_id >= 0 else None
        if throttle and throttle.is_exceeded and self._replica_id not in partition.in_sync_replicas:
            return None
        piece = partition.read(wanted.fetch_offset, max(room, 0), end, minimum_one_batch=is_first)
        if throttle is not None:
            self._throttled = throttle, self._throttled[1] + piece.length
        return piece if piece.length else None

    def _diverges(self, wanted: FetchedPartition, partition: Partition, answer: Answer) -> bool:
        """Send a reader whose log diverges from ours the truncation point (KIP-595, Fetch v12+)."""
        epoch = wanted.last_fetched_epoch
        if wanted.fetch_offset < partition.log.log_start_offset:
            return False
        ours, end_offset = partition.log.end_offset_for_epoch(epoch)
        if ours < 0 or end_offset < 0:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if ours == epoch and end_offset >= wanted.fetch_offset:
            return False
        answer.diverging_epoch = Answer.DivergingEpoch(epoch=ours, end_offset=end_offset)
        self.is_urgent = True
        return True
