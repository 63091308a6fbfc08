"""Sends the dead letters of one partition on, as long as this broker leads it.

The next step is decided in `relay_plan` and executed here. Nothing is sent before it is noted in
the log, and that is committed: otherwise the next leader would not know it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

from broker.delivery.dead_letter_sender import committed
from broker.delivery.relay_plan import Step
from broker.delivery.waiting_list import size_of
from broker.runtime.supervision import FIRST_PAUSE_MS, LONGEST_PAUSE_MS
from protocol.delays.relay_batch import build_relay
from protocol.delays.retry_headers import dead_letter
from protocol.errors import ApiError, ErrorCode
from protocol.records.builder import NewRecord, build_batch
from storage.append.append_source import FROM_COORDINATOR

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from broker.delivery.relay_plan import RelayPlan
    from broker.partitions.partition import Partition
    from broker.runtime.event_loop import BackgroundLoop
    from protocol.delays.relay_batch import Position, Relay
    from protocol.records.record import Record

logger = logging.getLogger(__name__)

ONE_ACK: Final = 1
MOST_BYTES: Final = 1 << 16
"""Keys, values and headers of one batch, unless one record has more. Fixed: it is made on the event
loop, and is to fit into `max.message.bytes` of whatever topic."""
ELECTION_MS: Final = 1_000
"""Retry interval from which a missing leader is logged: before, the partition may be new."""
RETRY_SUFFIX: Final = ".retry"
DEAD_SUFFIX: Final = ".dlq"


class Sender(Protocol):
    """`DeadLetterSender`."""

    async def send(self, topic: str, index: int, batch: bytearray, /) -> ErrorCode:
        """Send a batch; NONE when all in-sync replicas have it."""


class DeadLetterPorts(NamedTuple):
    """Services of a broker needed to send dead letters on."""

    sender: Sender
    obtain_producer_id: Callable[[], Awaitable[int]]
    """Raises ApiError if there is none now."""


class DeadLetterRelay:
    """The work on one partition, which begins with its first dead letter; `stop` ends it."""

    def __init__(
        self,
        partition: Partition,
        plan: RelayPlan,
        record: Callable[[int], Awaitable[Record | None]],
        loop: BackgroundLoop,
        ports: DeadLetterPorts,
    ) -> None:
        """`record` returns the waiting record at an offset, None if it is gone."""
        self._partition = partition
        self._plan = plan
        self._record = record
        self._loop = loop
        self._ports = ports
        self._poked = asyncio.Event()
        self._task: asyncio.Task[object] | None = None
        self._told: ErrorCode | None = None
        self._lost: ErrorCode | None = None
        """Reason for needing another producer; logged once noted, by the leader at that time."""

    def poke(self) -> None:
        """The plan may have something to do."""
        if self._plan.next() is Step.REST:
            return
        self._poked.set()
        if self._task is None or self._task.done():
            name = f"dead letters of {self._partition.topic}-{self._partition.index}"
            self._task = cast("asyncio.Task[object]", self._loop.spawn(self._run(), name))

    def stop(self) -> None:
        """Stop: another broker leads, or the state derived from the log is void."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        pause_ms = FIRST_PAUSE_MS
        while True:
            self._poked.clear()
            code = await self._take()
            if code is None:
                await self._poked.wait()
                continue
            if code is ErrorCode.NONE:
                pause_ms = FIRST_PAUSE_MS
                continue
            if code is not ErrorCode.LEADER_NOT_AVAILABLE or pause_ms > ELECTION_MS:
                self._tell(code)
            await self._loop.timers.sleep(pause_ms)
            pause_ms = min(2 * pause_ms, LONGEST_PAUSE_MS)

    async def _take(self) -> ErrorCode | None:
        """Take a step; NONE when it is done, None without any."""
        try:
            step = self._plan.next()
            if step is Step.REST:
                return None
            if step is Step.OBTAIN:
                self._plan.obtained(await self._ports.obtain_producer_id())
                return ErrorCode.NONE
            if step is Step.NOTE:
                return await self._note()
            return await self._send()
        except ApiError as error:
            return error.code
        except Exception as error:  # noqa: BLE001 - noted
            self._loop.note("dead letters", error)
            return ErrorCode.UNKNOWN_SERVER_ERROR

    async def _note(self) -> ErrorCode:
        relay = self._plan.to_note(await self._fitting(self._plan.to_choose_from()))
        now_ms = self._loop.clock.now_ms()
        batch = memoryview(build_relay(relay, now_ms))
        info = self._partition.append_records(batch, ONE_ACK, FROM_COORDINATOR, now_ms)
        code = await committed(self._partition, info.last_offset + 1)
        if code is ErrorCode.NONE:
            self._plan.noted_in_log(relay)
            self._tell_loss()
        return code

    async def _fitting(self, positions: Sequence[Position]) -> int:
        """Number of these dead letters that make a batch: those within MOST_BYTES, or one."""
        size = 0
        for count, position in enumerate(positions):
            record = await self._record(position.offset)
            size += 0 if record is None else size_of(record)
            if size > MOST_BYTES:
                return max(count, 1)
        return len(positions)

    async def _send(self) -> ErrorCode:
        plan, partition = self._plan, self._partition
        batch = await self._batch(plan.to_send(), plan.noted)
        if batch is None:
            plan.answered(ErrorCode.NONE)
            return ErrorCode.NONE
        topic = partition.log.config.retry_dead_letter_topic
        if topic in ("", partition.topic):
            topic = dead_letter_topic(partition.topic)
        code = await self._ports.sender.send(topic, partition.index, batch)
        if not plan.answered(code):
            return code
        if code is ErrorCode.NONE:
            self._tell_success()
        elif plan.is_producer_lost:
            self._lost = code
        return ErrorCode.NONE

    async def _batch(self, positions: Sequence[Position], relay: Relay) -> bytearray | None:
        """The batch between the two positions of `relay`, always the same; None if all is gone."""
        partition = self._partition
        records = []
        for position in positions:
            record = await self._record(position.offset)
            if record is None:
                continue  # it was deleted meanwhile, and a duplicate is no longer recognised
            source = partition.topic, partition.index, position.offset
            headers = dead_letter(record.headers, source, record.timestamp)
            records.append(NewRecord(record.timestamp, record.key, record.value, headers))
        if not records:
            return None
        return build_batch(
            records,
            producer_id=relay.producer_id,
            producer_epoch=relay.producer_epoch,
            base_sequence=relay.sequence,
        )

    def _tell(self, code: ErrorCode) -> None:
        """Log a failure once, not at each attempt."""
        if code is not self._told:
            self._told = code
            logger.warning(
                "dead letters of %s-%d wait: %s",
                *(self._partition.topic, self._partition.index, code.name),
            )

    def _tell_loss(self) -> None:
        """Not before: a leader that was deposed unawares is refused as well, and notes nothing."""
        if self._lost is not None:
            partition = self._partition
            logger.warning(
                "dead letters of %s-%d: their topic does not know their producer (%s); they are "
                "sent by another, and some may arrive twice",
                *(partition.topic, partition.index, self._lost.name),
            )
            self._lost = None

    def _tell_success(self) -> None:
        if self._told is not None:
            self._told = None
            logger.info(
                "dead letters of %s-%d are sent on again",
                *(self._partition.topic, self._partition.index),
            )


def dead_letter_topic(retry_topic: str) -> str:
    """`billing.dlq` for `billing.retry`."""
    return retry_topic.removesuffix(RETRY_SUFFIX) + DEAD_SUFFIX
