"""A fetcher: one task that fetches from one leader the partitions that this broker follows there.

A request has the log end of each replica, the answer its next records, or the point where the
histories diverge. An error of one partition delays that partition only. Large pieces are written by
another thread: the event loop does other work meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from broker.network.links import Link, LinkError
from broker.replica_fetchers.fetch_requests import VERSION, FetchLimits, FetchRequests, position_of
from broker.replica_fetchers.out_of_range import find_range
from broker.replica_fetchers.own_flushes import is_owing, until_flushed
from broker.replica_fetchers.refusals import Refusals
from broker.runtime.supervision import log_failure
from protocol.errors import ApiError, ErrorCode
from protocol.messages.fetch import FetchResponse
from protocol.records.batch import runs_of_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Executor
    from uuid import UUID

    from broker.partitions.partition import Partition
    from broker.partitions.throttle import Throttle
    from broker.runtime.clock import Clock
    from broker.runtime.timers import Timers
    from protocol.wire import Buffer

logger = logging.getLogger(__name__)

Answer = FetchResponse.Response.Partition

MUCH_BYTES = 256 * 1024
"""Bytes of one partition above which another thread writes them."""

PIECE_BYTES = 1024 * 1024
"""Bytes of one partition appended at once: they block the event loop.

Smaller ones cost more in going to a thread and back than they gain.
"""

FENCED = frozenset({ErrorCode.FENCED_LEADER_EPOCH})
"""Errors of a newer leader epoch; the controller will announce its leader."""


class FetcherSettings(NamedTuple):
    """Settings shared by all fetchers of a broker."""

    local_id: int
    broker_epoch: Callable[[], int]
    """Of the present life: it changes when the broker had to register again."""
    limits: FetchLimits
    backoff_ms: int
    clock: Clock
    timers: Timers
    disk_threads: Executor
    """Write large pieces."""
    throttle: Throttle | None = None
    """Throttles replicas that are far behind, if topics and this broker are configured so."""
    note_failure: Callable[[str, BaseException], None] = log_failure
    """Notes an unforeseen error with one partition."""


class Lane(Protocol):
    """Owner of a fetcher, which assigns its partitions and may move them to another one."""

    def before_asking(self, fetcher: ReplicaFetcher) -> None:
        """The fetcher has nothing under way: partitions can come without waiting."""

    def found(self, fetcher: ReplicaFetcher, partition: Partition, *, is_behind: bool) -> None:
        """After an answer: the replica now lacks something that is committed, or no longer."""


class ReplicaFetcher:
    """Follows one leader. Run `run` in a task; `close` ends the wait for an answer."""

    def __init__(
        self,
        leader_id: int,
        link: Link,
        settings: FetcherSettings,
        lane: Lane,
        *,
        is_for_those_behind: bool = False,
    ) -> None:
        self.leader_id = leader_id
        self._link = link
        self._settings = settings
        self._lane = lane
        self._is_for_those_behind = is_for_those_behind
        self._requests = FetchRequests(settings.local_id, settings.broker_epoch, settings.limits)
        self._partitions: dict[tuple[UUID, int], Partition] = {}
        self._wanted: dict[Partition, None] = {}
        """Partitions fetched now: neither delayed nor throttled."""
        self._changed: dict[Partition, None] = {}
        """Partitions whose position the leader may not have."""
        self._delayed_until_ms: dict[Partition, int] = {}
        self._held_up: dict[Partition, None] = {}
        """By the throttle."""
        self._caught_up: dict[Partition, bool] = {}
        """True if the last answer brought all committed records: then it is not throttled."""
        self._refusals = Refusals(leader_id)
        self._has_work = asyncio.Event()
        self._is_failing = False
        """So that a leader that cannot be reached is logged once, not each second."""

    def follow(self, partition: Partition, *, is_caught_up: bool = False) -> None:
        """Begin, or go on in a new leader epoch; one that has caught up is not throttled."""
        self._partitions[partition.topic_id, partition.index] = partition
        self._refusals.forget(partition)
        if is_caught_up and self._settings.throttle is not None:
            self._caught_up[partition] = True
        self._want(partition)
        self.wake()

    def wake(self) -> None:
        """Look again for something to fetch."""
        self._has_work.set()

    def leave(self, partition: Partition) -> None:
        """Stop following this partition; an answer under way is not used."""
        self._partitions.pop((partition.topic_id, partition.index), None)
        self._caught_up.pop(partition, None)
        self._refusals.forget(partition)
        self._set_aside(partition)

    def _follows(self, partition: Partition) -> bool:
        return self._partitions.get((partition.topic_id, partition.index)) is partition

    @property
    def is_idle(self) -> bool:
        """True if there is nothing left to follow."""
        return not self._partitions

    def close(self) -> None:
        """Hang up."""
        self._link.close()

    async def run(self) -> None:
        """Fetch until cancelled. May be run again after an error: the session starts over."""
        self._begin_anew()
        while True:
            self._has_work.clear()
            self._lane.before_asking(self)
            if self._delayed_until_ms or self._settings.throttle is not None:
                self._see_who_waits()
            if not self._wanted:
                await self._wait()
                continue
            try:
                await self.fetch_once()
            except LinkError as error:
                if not self._is_failing:
                    logger.warning("fetching from leader %d failed: %s", self.leader_id, error)
                    self._is_failing = True
                self._begin_anew()
                await self._back_off()
            else:
                if self._is_failing:
                    logger.info("fetching from leader %d resumed", self.leader_id)
                    self._is_failing = False

    async def fetch_once(self) -> None:
        """One request and what its answer brings; raises LinkError."""
        changed, self._changed = self._changed, {}
        for partition in changed:
            if partition.durability is not None:
                await self._until_flushed(changed)
                break
        request = self._requests.make(self._wanted, changed)
        response = cast("FetchResponse", await self._link.ask(request, VERSION))
        if response.error_code:
            self._begin_anew()
            logger.info(
                "broker %d: %s; starting a new fetch session",
                self.leader_id,
                ErrorCode(response.error_code).name,
            )
            if not request.session_epoch:
                await self._back_off()
            return
        is_session_kept = self._requests.opened(response.session_id)
        strayed = await self._take_all(response)
        if self._refusals.has_news:
            self._refusals.tell()
        for partition in strayed:  # last, as the answer is valid until the next request on the link
            await self._return(partition)
        if not is_session_kept:
            self._begin_anew()

    async def _take_all(self, response: FetchResponse) -> list[Partition]:
        """Apply an answer; return the partitions out of range."""
        strayed = []
        much = []
        for topic in response.responses:
            for answer in topic.partitions:
                partition = self._partitions.get((topic.topic_id, answer.partition_index))
                if partition is None:
                    continue
                if len(answer.records or b"") > MUCH_BYTES and not answer.error_code:
                    much.append(self._take_in_pieces(partition, answer))
                elif self._take(partition, answer):
                    strayed.append(partition)
        if much:
            await asyncio.gather(*much)  # one is checked while another is written
        return strayed

    def _take(self, partition: Partition, answer: Answer) -> bool:
        """Apply a leader's answer for one partition; return whether it was out of range.

        Ignored if the replica has changed since the request.
        """
        if not self._is_to_take(partition):
            return False
        try:
            if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                return True
            if answer.error_code:
                self._refused(partition, ErrorCode(answer.error_code))
            elif answer.diverging_epoch.epoch >= 0 or answer.diverging_epoch.end_offset >= 0:
                at = answer.diverging_epoch
                partition.diverged(at.epoch, at.end_offset)
            else:
                self._append(partition, answer, cast("memoryview", answer.records) or b"")
                self._note_progress(partition, answer)
        except Exception as error:  # noqa: BLE001 - reported
            self._cannot_follow(partition, error)
        return False

    def _is_to_take(self, partition: Partition) -> bool:
        self._changed[partition] = None
        return partition in self._wanted and self._requests.is_current(partition)

    async def _take_in_pieces(self, partition: Partition, answer: Answer) -> None:
        """Append much, and let others have the event loop in between."""
        if not self._is_to_take(partition):
            return
        pieces = runs_of_batches(cast("memoryview", answer.records), PIECE_BYTES)
        try:
            for piece in pieces:
                if not await self._append_aside(partition, answer, piece):
                    return
            self._note_progress(partition, answer)
        except Exception as error:  # noqa: BLE001 - reported
            self._cannot_follow(partition, error)

    def _note_progress(self, partition: Partition, answer: Answer) -> None:
        """Note the progress of a partition, and move it to the other fetcher if need be.

        One without records may have been left out for lack of room: no reason to move it.
        """
        if self._refusals.reasons:
            self._refusals.resume(partition)
        is_behind = bool(answer.records) and partition.log.log_end_offset < answer.high_watermark
        if is_behind != self._is_for_those_behind:
            self._lane.found(self, partition, is_behind=is_behind)

    async def _return(self, partition: Partition) -> None:
        try:
            is_followed = partial(self._follows, partition)
            await find_range(partition, self._link, self._settings.local_id, is_followed)
        except LinkError:
            raise
        except Exception as error:  # noqa: BLE001 - reported
            self._cannot_follow(partition, error)

    def _cannot_follow(self, partition: Partition, error: Exception) -> None:
        """Retry later: no error of one partition may delay the others."""
        if isinstance(error, ApiError):
            self._refusals.note_failure(partition, error)
        else:
            self._settings.note_failure(f"following {partition.topic}-{partition.index}", error)
        if self._follows(partition):  # it may not, if this took a while
            self._delay(partition)

    async def _append_aside(self, partition: Partition, answer: Answer, records: Buffer) -> bool:
        """Append on another thread; False if the replica has changed meanwhile.

        That includes changes that its position does not show: any append, truncation or roll voids
        the write.
        """
        log = partition.log
        pending = log.begin_append_as_follower(records, self._settings.clock.now_ms())
        if pending is None:
            self._append(partition, answer, records)
            return True
        before = position_of(partition)
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._settings.disk_threads, pending.write.run)
        if partition not in self._wanted or position_of(partition) != before:
            return False
        if not log.finish_append_as_follower(pending):
            return False
        partition.heard_from_leader(answer.high_watermark, answer.log_start_offset)
        self._note_traffic(partition, answer, records)
        return True

    async def _until_flushed(self, changed: Iterable[Partition]) -> None:
        """Wait for the disk, for the positions that the next request acknowledges."""
        while owing := [one for one in changed if one in self._wanted and is_owing(one)]:
            for partition in owing:
                code = await until_flushed(partition)
                if code is not ErrorCode.NONE and partition in self._wanted:
                    self._delay(partition)

    def _append(self, partition: Partition, answer: Answer, records: Buffer) -> None:
        partition.append_from_leader(
            records, answer.high_watermark, answer.log_start_offset, self._settings.clock.now_ms()
        )
        self._note_traffic(partition, answer, records)

    def _note_traffic(self, partition: Partition, answer: Answer, records: Buffer) -> None:
        throttle = self._settings.throttle
        if throttle is not None and throttle.covers(partition):
            throttle.record(len(records))
            self._caught_up[partition] = partition.log.log_end_offset >= answer.high_watermark

    def _refused(self, partition: Partition, code: ErrorCode) -> None:
        self._refusals.note(partition, code)
        if code in FENCED:
            self.leave(partition)
        else:
            self._delay(partition)

    # Waiting

    def _want(self, partition: Partition) -> None:
        self._delayed_until_ms.pop(partition, None)
        self._held_up.pop(partition, None)
        self._wanted[partition] = None
        self._changed[partition] = None

    def _set_aside(self, partition: Partition) -> None:
        self._delayed_until_ms.pop(partition, None)
        self._held_up.pop(partition, None)
        self._wanted.pop(partition, None)
        self._changed[partition] = None

    def _begin_anew(self) -> None:
        """Start over: the leader has dropped the session."""
        self._requests.reset()
        self._changed = dict(self._wanted)

    def _delay(self, partition: Partition) -> None:
        self._set_aside(partition)
        until_ms = self._settings.clock.monotonic_ms() + self._settings.backoff_ms
        self._delayed_until_ms[partition] = until_ms

    def _see_who_waits(self) -> None:
        """Resume partitions whose delay is over; apply the throttle."""
        if self._delayed_until_ms:
            now_ms = self._settings.clock.monotonic_ms()
            due = [one for one, until in self._delayed_until_ms.items() if until <= now_ms]
            for partition in due:
                self._want(partition)
        throttle = self._settings.throttle
        if throttle is not None and throttle.is_exceeded:
            for partition in tuple(self._wanted):
                if not self._caught_up.get(partition) and throttle.covers(partition):
                    self._set_aside(partition)
                    self._held_up[partition] = None
        else:
            for partition in tuple(self._held_up):
                self._want(partition)

    async def _wait(self) -> None:
        """Until there is something to follow, or a delay may be over, whichever comes first."""
        if not self._partitions:
            await self._has_work.wait()
            return
        timer = self._settings.timers.schedule(self._settings.backoff_ms, self._has_work.set)
        try:
            await self._has_work.wait()
        finally:
            timer.cancel()

    async def _back_off(self) -> None:
        await self._settings.timers.sleep(self._settings.backoff_ms)
