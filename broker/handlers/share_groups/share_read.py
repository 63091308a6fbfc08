"""One pass over the partitions of a share fetch, and what its member acquires in the end.

A pass finds out what could be acquired and how many bytes that is. Nothing is acquired before the
answer is made, so that a request which waits keeps nothing from others. The bytes are divided
evenly among the partitions from which something can be acquired; the first that has it gives a
batch whatever its size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from broker.handlers.records.current_leader import current_leader
from broker.handlers.records.fetch_quota import most_bytes
from broker.handlers.records.fetch_read import LED_OTHERWISE
from broker.share_partitions.led_partition import LedState
from coordinator.share_partitions.acquisition import Wanted
from protocol.errors import ApiError, ErrorCode, detached
from protocol.messages.share_fetch import ShareFetchResponse

if TYPE_CHECKING:
    from broker.handlers.share_groups.topic_access import TopicAccess
    from broker.partitions.partition import Partition
    from broker.requests.context import Context
    from broker.requests.steps import Steps
    from broker.share_partitions.led_partition import LedSharePartition
    from broker.share_partitions.share_sessions import ShareSession, TopicPartition
    from coordinator.share_partitions.acquisition import Acquired
    from protocol.messages.share_fetch import ShareFetchRequest
    from storage.segment.slices import Slice

Answer = ShareFetchResponse.Response.Partition
NodeEndpoint = ShareFetchResponse.NodeEndpoint

RECORD_LIMIT: Final = 1
"""The `share_acquire_mode` in which batches are split rather than exceed `max_records`."""
MOST_PARTITIONS: Final = 200
"""Partitions looked at for one request. Fixed by how long the loop may be held, a few milliseconds;
a session with more gets the others with its next request, which begins behind these."""
MOST_BATCHES: Final = 1000
"""Batches in one answer. Fixed by how long the loop may be held: each costs a look at its header,
two milliseconds in all. The next request begins behind them."""
EMPTY: Final = b""

_NO_LEADER: Final = Answer.CurrentLeader(leader_id=0, leader_epoch=0)
"""Shared by all answers, and never changed in place; the zeros are Apache's."""


class _Found(NamedTuple):
    """A partition with something to acquire."""

    wanted: TopicPartition
    led: LedSharePartition
    piece: Slice


class Fetched(NamedTuple):
    """The outcome of a share fetch."""

    answers: dict[TopicPartition, Answer]
    endpoints: dict[int, NodeEndpoint]
    """Of the leaders that answers name."""
    throttle_ms: int = 0


class ShareRead:
    """Partitions and limits of one request of a session."""

    def __init__(
        self,
        context: Context,
        request: ShareFetchRequest,
        session: ShareSession,
        access: TopicAccess,
    ) -> None:
        self._context = context
        self._request = request
        self._session = session
        self._epoch = session.epoch
        self._access = access
        self._limit = most_bytes(context, request.max_bytes, is_by_follower=False)
        self._min_bytes = min(request.min_bytes, self._limit)
        self._partitions = session.turn(MOST_PARTITIONS)
        self._led: dict[TopicPartition, LedSharePartition] = {}
        self._errors: dict[TopicPartition, ApiError] = {}
        self._found: list[_Found] = []
        self._bytes = 0

    @property
    def is_empty(self) -> bool:
        """True if nothing is asked for, so that there is no wait."""
        return not self._partitions or self._request.max_records <= 0 or self._limit <= 0

    @property
    def max_wait_ms(self) -> int:
        """Longest wait; less if the session has further partitions, which have their turn next."""
        part = len(self._partitions) / max(1, len(self._session.partitions))
        return int(self._request.max_wait_ms * part)

    @property
    def is_satisfied(self) -> bool:
        """True if the response is due."""
        is_enough = bool(self._found) and self._bytes >= self._min_bytes
        return is_enough or bool(self._errors) or not self._is_current

    @property
    def _is_current(self) -> bool:
        return self._session.is_open and self._session.epoch == self._epoch

    def begin(self) -> Steps[None]:
        """Have those partitions served that are not yet, pausing after each: it may append twice.

        `run` comes after that. Between two of them the member may go, and others may lead.
        """
        shares, group_id = self._context.broker.share_partitions, self._session.member.group_id
        for wanted in self._partitions:
            if shares.find(group_id, wanted) is not None:
                continue
            if not self._is_current:
                return  # nothing is loaded for a member that is gone
            try:
                self._obtain(wanted)
            except ApiError as error:
                self._errors[wanted] = detached(error)
            yield

    def run(self) -> None:
        """Read all partitions again."""
        self._found, self._bytes = [], 0
        if not self._is_current:
            return  # nothing is loaded for a member that is gone
        ready = []
        for wanted in self._partitions:
            if wanted in self._errors:
                continue
            try:
                led = self._obtain(wanted)
                if led.failure is not None:
                    raise led.failure.with_traceback(None)
                if led.can_acquire:
                    ready.append((wanted, led))
            except ApiError as error:
                self._errors[wanted] = detached(error)
        for wanted, led in ready:
            self._read(wanted, led, self._limit // len(ready))

    def _obtain(self, wanted: TopicPartition) -> LedSharePartition:
        """The same each time: if that has ended, so does the wait for it."""
        led = self._led.get(wanted)
        if led is None:
            name = self._access.require(wanted)
            shares = self._context.broker.share_partitions
            led = shares.obtain(self._session.member.group_id, wanted, name)
            self._led[wanted] = led
        return led

    def _read(self, wanted: TopicPartition, led: LedSharePartition, max_bytes: int) -> None:
        try:
            piece = led.read(max_bytes, minimum_one_batch=not self._bytes)
        except ApiError as error:
            self._errors[wanted] = detached(error)
            return
        if piece.length:
            self._bytes += piece.length
            self._found.append(_Found(wanted, led, piece))

    def watched(self) -> list[Partition | LedSharePartition]:
        """Partitions that can satisfy the request, by growth, a release or an error."""
        loading = [led for led in self._led.values() if led.state is not LedState.OVER]
        return [*loading, *(led.partition for led in loading)]

    def acquired(self) -> Fetched:
        """Acquire the records of the last pass. Raises ApiError INVALID_SHARE_SESSION_EPOCH."""
        if not self._is_current:
            raise ApiError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        fetched = Fetched({}, {})
        for wanted, error in self._errors.items():
            fetched.answers[wanted] = self._refused(wanted, error.code, fetched.endpoints)
        meter = self._context.meter
        if meter is not None and (throttle_ms := meter.settle_fetch(self._bytes)):
            return fetched._replace(throttle_ms=throttle_ms)
        request = self._request
        records, batches = request.max_records, MOST_BATCHES
        for wanted, led, piece in self._found:
            if records <= 0 or batches <= 0:
                break
            asked = Wanted(
                self._session.member.member_id,
                0,
                records,
                request.batch_size,
                request.share_acquire_mode == RECORD_LIMIT,
            )
            try:
                taken = led.acquire(asked, piece, batches)
            except ApiError as failure:
                fetched.answers[wanted] = self._refused(wanted, failure.code, fetched.endpoints)
                continue
            if taken is not None:
                records -= taken.record_count
                batches -= taken.batch_count
                fetched.answers[wanted] = _answer(wanted, taken.acquired, taken.records)
                self._session.served(wanted)
        return fetched

    def _refused(
        self, wanted: TopicPartition, code: ErrorCode, endpoints: dict[int, NodeEndpoint]
    ) -> Answer:
        answer = Answer(
            partition_index=wanted.partition,
            error_code=code,
            acknowledge_error_code=ErrorCode.NONE,
            current_leader=_NO_LEADER,
            records=EMPTY,
            acquired_records=[],
        )
        if code in LED_OTHERWISE:
            name = self._access.name(wanted.topic_id)
            leader_id, epoch, node = current_leader(self._context, name, wanted.partition)
            answer.current_leader = Answer.CurrentLeader(leader_id=leader_id, leader_epoch=epoch)
            if node is not None:
                endpoints[node.id] = NodeEndpoint(
                    node_id=node.id, host=node.host, port=node.port, rack=node.rack
                )
        return answer


def _answer(wanted: TopicPartition, acquired: list[Acquired], records: Slice) -> Answer:
    return Answer(
        partition_index=wanted.partition,
        error_code=ErrorCode.NONE,
        acknowledge_error_code=ErrorCode.NONE,
        current_leader=_NO_LEADER,
        records=records,
        acquired_records=[
            Answer.AcquiredRecord(
                first_offset=one.first, last_offset=one.last, delivery_count=one.delivery_count
            )
            for one in acquired
        ],
    )
