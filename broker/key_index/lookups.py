"""Look-ups on this broker: the event loop selects the logs, a process beside it searches.

Only partitions that this broker leads are searched, and only records that consumers may read. The
process opens the files by their names, so it may find others than intended: if a log was truncated,
compacted or deleted meanwhile, the look-up starts over.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from broker.key_index.topic_access import RefusedError, TopicAccess, require_access, require_whole
from broker.maintenance.key_indexer import MODULE
from broker.maintenance.side_process import ProcessEndedError, SideProcess
from storage.key_index.job import (
    JobFailed,
    LookupDone,
    LookupJob,
    LookupLimits,
    PartitionPlace,
    SegmentPlace,
    decode_report,
    encode_job,
)

if TYPE_CHECKING:
    from broker.key_index.request import LookupRequest
    from broker.maintenance.key_indexer import KeyIndexer
    from broker.partitions.partition import Partition
    from broker.requests.services import BrokerServices
    from storage.log.log import Log

logger = logging.getLogger(__name__)

ATTEMPTS: Final = 5
"""Maximum number of attempts before a look-up fails because the log keeps changing."""
GRACE_SECONDS: Final = 10.0
"""Time for steps that the process cannot interrupt: one batch, a slow disk."""
NO_LEADER: Final = -1
STOPPING: Final = ("503 Service Unavailable", "the broker stops")


@dataclass(frozen=True, slots=True)
class LookupAnswer:
    """Records, and what else there is to say."""

    done: LookupDone
    records: bytes
    """A JSON array."""
    elsewhere: tuple[tuple[int, int], ...]
    """Partitions that this broker does not lead, and their leaders; -1 for none."""


@dataclass(slots=True)
class LookupCounts:
    """Counters of look-ups so far."""

    lookups: int = 0
    refused: int = 0
    records: int = 0
    bytes_read: int = 0


class Lookups:
    """One look-up after the other."""

    def __init__(self, services: BrokerServices, indexer: KeyIndexer) -> None:
        self._services = services
        self._indexer = indexer
        self._process = SideProcess(MODULE)
        self._turn = asyncio.Lock()
        self._is_closed = False
        self.counts = LookupCounts()

    async def start(self) -> None:
        """Have the process ready before the first look-up, which would wait for it."""
        try:
            await self._process.start()
        except OSError as error:
            logger.warning("key index look-ups have no process yet: %s", error)

    async def close(self) -> None:
        """End the process; look-ups that it works at, or that wait for it, are refused."""
        self._is_closed = True
        await self._process.close()

    async def find(self, request: LookupRequest, address: str) -> LookupAnswer:
        """Look records up for a client at this address. Raises RefusedError."""
        try:
            require_access(self._services, TopicAccess("KeyLookup", address, request.topic))
            async with self._turn:
                answer = await self._find(request)
        except RefusedError:
            self.counts.refused += 1
            raise
        self.counts.lookups += 1
        self.counts.records += answer.done.records
        self.counts.bytes_read += answer.done.bytes_read
        return answer

    async def _find(self, request: LookupRequest) -> LookupAnswer:
        for _ in range(ATTEMPTS):
            partitions, elsewhere = self._partitions(request)
            job, logs = await self._job(request, partitions)
            truncations = {log: log.offsets.truncations for log in logs.values()}
            outcome = await self._run(job)
            async for partition in self._services.slices().each(partitions):
                require_whole(partition)  # another may lead, and have acknowledged more, meanwhile
            is_as_it_was = all(
                log.directory.failure is None and log.offsets.truncations == count
                for log, count in truncations.items()
            )
            if outcome is not None and is_as_it_was:
                done, records = outcome
                for index, base_offset in done.damaged:
                    self._indexer.note_damage(logs[index], base_offset)
                return LookupAnswer(done, records, tuple(elsewhere))
        raise RefusedError("503 Service Unavailable", "the log keeps changing; try again")

    def _partitions(self, request: LookupRequest) -> tuple[list[Partition], list[tuple[int, int]]]:
        """Partitions to search here, in order, and those led by others. Raises RefusedError."""
        services = self._services
        topic = services.metadata.topic(request.topic)
        if topic is None:
            raise RefusedError("404 Not Found", f"there is no topic {request.topic:.250}")
        if not services.topic_configs.topic_config(request.topic).key_index_enable:
            text = f"topic {request.topic} has no key index: set key.index.enable=true"
            raise RefusedError("409 Conflict", text)
        numbers = sorted(topic.partitions)
        if request.partition is not None:
            if request.partition not in topic.partitions:
                text = f"there is no partition {request.topic}-{request.partition}"
                raise RefusedError("404 Not Found", text)
            numbers = [request.partition]
        found, elsewhere = [], []
        for number in numbers:
            partition = services.replicas.partition(request.topic, number)
            if partition is not None and partition.is_leader:
                if number >= request.start[0]:
                    found.append(partition)
            else:
                elsewhere.append((number, topic.partitions[number].leader))
        return found, elsewhere

    async def _job(
        self, request: LookupRequest, partitions: list[Partition]
    ) -> tuple[LookupJob, dict[int, Log]]:
        places, logs = [], {}
        async for partition in self._services.slices().each(partitions):
            log = partition.log
            require_whole(partition)
            if log.directory.failure is not None:
                text = f"log directory {log.directory.path} is offline"
                raise RefusedError("503 Service Unavailable", text)
            logs[partition.index] = log
            is_first = partition.index == request.start[0]
            places.append(_place(partition, request, request.start[1] if is_first else 0))
        config = self._services.config
        limits = LookupLimits(
            min(request.limit, config.key_index_lookup_max_records),
            config.key_index_lookup_max_bytes,
            config.key_index_lookup_timeout_ms,
        )
        return LookupJob(request.query, tuple(places), limits, request.is_read_committed), logs

    async def _run(self, job: LookupJob) -> tuple[LookupDone, bytes] | None:
        """Have the process do it; None when the log has changed since. Raises RefusedError."""
        process = self._process
        is_whole = False
        try:
            # A line of a thousand segments takes milliseconds to write.
            line = await asyncio.to_thread(encode_job, job)
            if self._is_closed:  # a new process would never be ended
                raise RefusedError(*STOPPING)
            await process.submit(line)
            answer = await process.line(job.limits.milliseconds / 1000 + GRACE_SECONDS)
            if answer is None:
                raise RefusedError("504 Gateway Timeout", "the look-up took too long")
            report = decode_report(answer)
            records = await process.read(report.length) if isinstance(report, LookupDone) else b""
            is_whole = True
        except (OSError, ProcessEndedError, ValueError, KeyError, TypeError) as error:
            if self._is_closed:
                raise RefusedError(*STOPPING) from None
            logger.warning("key index look-up failed: %s", error)
            raise RefusedError("500 Internal Server Error", "see the broker's log") from None
        finally:
            if not is_whole:  # the next answer must not be taken for this one
                await process.close()
        if isinstance(report, LookupDone):
            return report, records
        assert isinstance(report, JobFailed)
        if report.is_outdated:
            return None
        logger.warning("key index look-up failed: %s", report.message)
        raise RefusedError("500 Internal Server Error", report.message)


def _place(partition: Partition, request: LookupRequest, start: int) -> PartitionPlace:
    log = partition.log
    segments = log.segments
    from_offset = max(start, log.log_start_offset)
    end = partition.readable_end(is_read_committed=request.is_read_committed)
    first = segments.floor(from_offset)
    places = (segments[index] for index in range(first, len(segments)))
    return PartitionPlace(
        partition.index,
        log.path,
        tuple(SegmentPlace(one.base_offset, one.size) for one in places),
        from_offset,
        end,
    )
