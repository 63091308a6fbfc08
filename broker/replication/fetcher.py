"""A follower at work: one task that fetches from one leader whatever this broker follows there.

A request says how far each replica is, the answer brings what comes next, or where the histories
part. What goes wrong with one partition holds up that partition only.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, NamedTuple, cast

from broker.replication.fetch_requests import VERSION, FetchLimits, FetchRequests, position_of
from broker.replication.links import Link, LinkError
from broker.replication.truncation import common_end
from protocol.errors import ApiError, ErrorCode
from protocol.messages.fetch import FetchResponse
from protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from broker.clock import Clock
    from broker.partition import Partition
    from broker.replication.throttle import Throttle
    from broker.timers import Timers

logger = logging.getLogger(__name__)

Answer = FetchResponse.Response.Partition

EARLIEST_LOCAL = -4
LATEST = -1
LIST_OFFSETS_VERSION = 9

FENCED = frozenset({ErrorCode.FENCED_LEADER_EPOCH})
"""Somebody newer leads; the controller will say who."""


class FetcherSettings(NamedTuple):
    """What all fetchers of a broker share."""

    local_id: int
    broker_epoch: Callable[[], int]
    """Of the present life: it changes when the broker had to register again."""
    limits: FetchLimits
    backoff_ms: int
    clock: Clock
    timers: Timers
    throttle: Throttle | None = None
    """Holds up replicas that are far behind, when topics and this broker say so."""


class ReplicaFetcher:
    """Follows one leader. Run `run` in a task; `close` ends the wait for an answer."""

    def __init__(self, leader_id: int, link: Link, settings: FetcherSettings) -> None:
        self.leader_id = leader_id
        self._link = link
        self._settings = settings
        self._requests = FetchRequests(settings.local_id, settings.broker_epoch, settings.limits)
        self._partitions: dict[tuple[UUID, int], Partition] = {}
        self._delayed_until_ms: dict[tuple[UUID, int], int] = {}
        self._caught_up: dict[tuple[UUID, int], bool] = {}
        """Whether the last answer brought all that is committed: such a one is not held up."""
        self._has_work = asyncio.Event()

    def follow(self, partition: Partition) -> None:
        """Begin, or go on in a new leader epoch."""
        key = partition.topic_id, partition.index
        self._partitions[key] = partition
        self._delayed_until_ms.pop(key, None)
        self._has_work.set()

    def leave(self, partition: Partition) -> None:
        """Follow this partition no more; an answer under way is not used."""
        key = partition.topic_id, partition.index
        self._partitions.pop(key, None)
        self._delayed_until_ms.pop(key, None)
        self._caught_up.pop(key, None)

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing left to follow."""
        return not self._partitions

    def close(self) -> None:
        """Hang up."""
        self._link.close()

    async def run(self) -> None:
        """Fetch until cancelled."""
        while True:
            self._has_work.clear()
            ready = self._ready()
            if not ready:
                await self._wait()
                continue
            try:
                await self.fetch_once(ready)
            except LinkError as error:
                logger.warning("broker %d cannot be followed: %s", self.leader_id, error)
                self._requests.reset()
                await self._back_off()

    async def fetch_once(self, ready: list[Partition]) -> None:
        """One request and what its answer brings; raises LinkError."""
        positions = {(one.topic_id, one.index): position_of(one) for one in ready}
        request = self._requests.make(ready)
        response = cast("FetchResponse", await self._link.ask(request, VERSION))
        if response.error_code:
            self._requests.reset()
            logger.info(
                "broker %d: %s; a new fetch session begins",
                self.leader_id,
                ErrorCode(response.error_code).name,
            )
            if not request.session_epoch:
                await self._back_off()
            return
        self._requests.opened(response.session_id)
        for topic in response.responses:
            for answer in topic.partitions:
                key = topic.topic_id, answer.partition_index
                partition = self._partitions.get(key)
                if partition is not None and positions.get(key) == position_of(partition):
                    await self._take(partition, answer)

    async def _take(self, partition: Partition, answer: Answer) -> None:
        try:
            if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                await self._find_range(partition)
            elif answer.error_code:
                self._refused(partition, ErrorCode(answer.error_code))
            elif answer.diverging_epoch.epoch >= 0 or answer.diverging_epoch.end_offset >= 0:
                self._truncate(partition, answer.diverging_epoch)
            else:
                self._append(partition, answer)
        except ApiError as error:
            logger.error(  # noqa: TRY400
                "%s-%d cannot be followed: %s", partition.topic, partition.index, error
            )
            self._delay(partition)

    def _append(self, partition: Partition, answer: Answer) -> None:
        records = cast("memoryview", answer.records) or b""
        partition.append_from_leader(
            records, answer.high_watermark, answer.log_start_offset, self._settings.clock.now_ms()
        )
        throttle = self._settings.throttle
        if throttle is not None and throttle.covers(partition):
            throttle.record(len(records))
            key = partition.topic_id, partition.index
            self._caught_up[key] = partition.log.log_end_offset >= answer.high_watermark

    def _truncate(self, partition: Partition, at: Answer.DivergingEpoch) -> None:
        log = partition.log
        end = common_end(log, at.epoch, at.end_offset)
        level = logging.WARNING if end < log.high_watermark else logging.INFO
        logger.log(
            level,
            "%s-%d: cut from offset %d to %d, where the leader's epoch %d ends (committed: %d)",
            partition.topic,
            partition.index,
            log.log_end_offset,
            end,
            at.epoch,
            log.high_watermark,
        )
        log.truncate_to(end)

    def _refused(self, partition: Partition, code: ErrorCode) -> None:
        logger.info("%s-%d: the leader answers %s", partition.topic, partition.index, code.name)
        if code in FENCED:
            self.leave(partition)
        else:
            self._delay(partition)

    async def _find_range(self, partition: Partition) -> None:
        """What we want is not there: the leader's log ends before ours, or begins after (RE-13)."""
        log = partition.log
        epoch = partition.leader_epoch
        end = await self._list_offset(partition, LATEST)
        if end < log.log_end_offset:
            if partition.leader_epoch == epoch:
                logger.warning(
                    "%s-%d: the leader's log ends at %d, before ours at %d: what is more is cut",
                    partition.topic,
                    partition.index,
                    end,
                    log.log_end_offset,
                )
                log.truncate_to(end)
            return
        start = await self._list_offset(partition, EARLIEST_LOCAL)
        if start > log.log_end_offset and partition.leader_epoch == epoch:
            logger.warning(
                "%s-%d: the leader's log begins at %d, after the end of ours at %d: begun anew",
                partition.topic,
                partition.index,
                start,
                log.log_end_offset,
            )
            log.truncate_fully_and_start_at(start)

    async def _list_offset(self, partition: Partition, timestamp: int) -> int:
        request = ListOffsetsRequest(
            replica_id=self._settings.local_id,
            topics=[
                ListOffsetsRequest.Topic(
                    name=partition.topic,
                    partitions=[
                        ListOffsetsRequest.Topic.Partition(
                            partition_index=partition.index,
                            current_leader_epoch=partition.leader_epoch,
                            timestamp=timestamp,
                        )
                    ],
                )
            ],
        )
        answered = await self._link.ask(request, LIST_OFFSETS_VERSION)
        (found,) = cast("ListOffsetsResponse", answered).topics[0].partitions
        if found.error_code:
            raise ApiError(ErrorCode(found.error_code), "the leader does not tell its offsets")
        return found.offset

    # Waiting

    def _ready(self) -> list[Partition]:
        throttle = self._settings.throttle
        if throttle is None or not throttle.is_exceeded:
            return self._undelayed()
        return [
            one
            for one in self._undelayed()
            if self._caught_up.get((one.topic_id, one.index)) or not throttle.covers(one)
        ]

    def _undelayed(self) -> list[Partition]:
        if not self._delayed_until_ms:
            return list(self._partitions.values())
        now_ms = self._settings.clock.monotonic_ms()
        delays = self._delayed_until_ms
        for key in [key for key, until_ms in delays.items() if until_ms <= now_ms]:
            del delays[key]
        return [one for key, one in self._partitions.items() if key not in delays]

    def _delay(self, partition: Partition) -> None:
        until_ms = self._settings.clock.monotonic_ms() + self._settings.backoff_ms
        self._delayed_until_ms[partition.topic_id, partition.index] = until_ms

    async def _wait(self) -> None:
        """Until there is something to follow, or a delay may be over."""
        if self._partitions:
            await self._back_off()
        else:
            await self._has_work.wait()

    async def _back_off(self) -> None:
        await self._settings.timers.sleep(self._settings.backoff_ms)
