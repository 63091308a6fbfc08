"""The task that follows the quorum: it asks, carries out what follows, and feeds the image."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from broker.metadata_log.image_snapshots import ImageSnapshots
from broker.network.links import LinkError
from controller.raft.destinations import Destinations
from controller.raft.effects import (
    AbandonSnapshot,
    AdvanceHighWatermark,
    Append,
    BeginSnapshot,
    Election,
    ExtendSnapshot,
    ReplaceLog,
    SaveElection,
    Truncate,
)
from controller.raft.log_view import LogView
from controller.raft.observer import Observer, Rest
from protocol.records.batch import runs_of_batches
from storage.directory.removals import Removals
from storage.metadata_log.quorum_state import QuorumState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Executor

    from broker.metadata_log.metadata_feed import MetadataFeed
    from broker.metadata_log.settings import MetadataSettings
    from broker.network.links import Address
    from broker.runtime.event_loop import BackgroundLoop
    from controller.image.publishers import Publisher
    from controller.raft.effects import Effect
    from controller.raft.requests import Replica
    from protocol.messages.fetch import FetchResponse
    from protocol.messages.fetch_snapshot import FetchSnapshotResponse
    from protocol.schema import Request, Response
    from protocol.wire import Buffer
    from storage.metadata_log.metadata_log import MetadataLog
    from storage.metadata_log.snapshot_files import PartialSnapshot

logger = logging.getLogger(__name__)

CLEANING_INTERVAL_MS = 60_000
PIECE_BYTES = 64 * 1024
"""Bytes appended at once: a thousand of the smallest batches take three milliseconds."""


class QuorumLinks(Protocol):
    """Connections to servers of the quorum; `ControllerLinks` are some."""

    async def ask(self, address: Address, request: Request) -> Response:
        """Send one request and wait for its answer; raises LinkError."""
        ...

    def close(self) -> None:
        """Hang up; a request that waits fails with LinkError."""
        ...


class ObserverParts(NamedTuple):
    """Surroundings of an observer."""

    log: MetadataLog
    feed: MetadataFeed
    links: QuorumLinks
    loop: BackgroundLoop
    disk_threads: Executor
    draw_below: Callable[[int], int]


class MetadataObserver:
    """Run `run` in a task, which ends when it is cancelled, or with an error; then `close`."""

    def __init__(
        self,
        replica: Replica,
        settings: MetadataSettings,
        parts: ObserverParts,
        publishers: Sequence[Publisher] = (),
    ) -> None:
        """Raises DamagedFileError, if `quorum-state` is. `publishers` hear of it once caught up."""
        self._parts = parts
        self._log = parts.log
        self._feed = parts.feed
        self._settings = settings
        self._publishers = publishers
        self._state = self._log.read_quorum_state()
        saved = Election(self._state.leader_epoch, self._state.leader_id)
        destinations = Destinations(settings.bootstrap, settings.retry_backoff_ms, parts.draw_below)
        self._observer = Observer(
            replica,
            destinations,
            settings.requests,
            settings.fetch_timeout_ms,
            max(saved, Election(self._view().last_epoch)),
        )
        self._observer.voter_addresses = settings.voters
        self._own_snapshots = ImageSnapshots(
            parts.log, parts.feed, settings.snapshots, parts.loop, parts.disk_threads
        )
        self._partial: PartialSnapshot | None = None
        """The leader's snapshot, as far as it has come."""
        self._leader_has: int | None = None
        """The high watermark that the leader sent last."""
        self._removals = Removals()
        self._clean_at_ms = parts.loop.clock.monotonic_ms() + CLEANING_INTERVAL_MS
        self._silent: set[Address] = set()
        """Servers that failed when they were last asked; so that each is logged once."""
        self._left_out_from = -1
        """Offset of the last batch that could not be appended; so that it is logged once."""
        self.caught_up = asyncio.Event()
        """Set when the image was for once as new as the leader's, and publishers have it."""

    @property
    def election(self) -> Election:
        """The newest epoch, and its leader."""
        return self._observer.election

    @property
    def leader_address(self) -> Address | None:
        """Address of the leader, if that is known."""
        return self._observer.leader_address

    async def run(self) -> None:
        """Follow the quorum until cancelled.

        Raises QuorumError, UnreadableMetadataError and LogDirectoryError: this node must not go on.
        """
        newest = self._log.snapshots.newest
        if newest is not None:
            await self._load_snapshot()
        while True:
            await self._turn()

    async def close(self) -> None:
        """Hang up, and leave the log as the next start likes to find it."""
        self._parts.links.close()
        if self._partial is not None:
            self._partial.abandon()
        await self._on_thread(self._log.log.close)

    async def _turn(self) -> None:
        clock = self._parts.loop.clock
        view, now_ms = self._view(), clock.monotonic_ms()
        step = self._observer.next_request(view, now_ms)
        if isinstance(step, Rest):
            await self._parts.loop.timers.sleep(max(step.until_ms - now_ms, 1))
            return
        try:
            response = await self._parts.links.ask(step.address, step.request)
        except LinkError as error:
            self._note_failure(step.address, error)
            self._observer.unanswered(step, clock.monotonic_ms())
            return
        self._silent.discard(step.address)
        answer = cast("FetchResponse | FetchSnapshotResponse", response)
        for effect in self._observer.answered(step, answer, view, clock.monotonic_ms()):
            if not await self._carry_out(effect):
                self._observer.left_out(step, clock.monotonic_ms())
        await self._feed_what_is_committed()
        self._keep_house()

    def _note_failure(self, address: Address, error: LinkError) -> None:
        if address not in self._silent:
            self._silent.add(address)
            logger.warning("controller at %s:%d does not answer: %s", *address, error)

    # Effects

    async def _carry_out(self, effect: Effect) -> bool:
        """Do it; returns whether all of it could be done."""
        match effect:
            case SaveElection(election):
                await self._save(election)
            case Append(records, leader_epoch):
                return await self._append(records, leader_epoch)
            case AdvanceHighWatermark(offset):
                self._leader_has = offset
                self._log.log.advance_high_watermark(offset)
            case Truncate(offset):
                end = self._log.log.log_end_offset
                logger.info("truncating the metadata log from offset %d to %d", end, offset)
                self._log.truncate_to(offset)
            case _:
                await self._carry_out_with_snapshot(effect)
        return True

    async def _append(self, records: Buffer, leader_epoch: int) -> bool:
        """Append piece by piece; returns whether all records are in the log."""
        slices = self._parts.loop.slices()
        for piece in runs_of_batches(records, PIECE_BYTES):
            await slices.give_way()
            length, problem = self._view().sound_prefix(piece, leader_epoch)
            if length:
                now_ms = self._parts.loop.clock.now_ms()
                problem = self._log.append(piece[:length], now_ms) or problem
            if problem:
                self._note_left_out(problem)
                return False
        return True

    def _note_left_out(self, problem: str) -> None:
        end_offset = self._log.log.log_end_offset
        if end_offset != self._left_out_from:
            self._left_out_from = end_offset
            logger.error("fetched metadata left out from offset %d on: %s", end_offset, problem)

    async def _carry_out_with_snapshot(self, effect: Effect) -> None:
        partial = self._partial
        match effect:
            case BeginSnapshot(snapshot_id):
                assert partial is None, "one snapshot at a time"
                logger.info("fetching metadata snapshot %d-%d of the leader", *snapshot_id)
                self._partial = self._log.snapshots.begin(snapshot_id)
            case ExtendSnapshot(data):
                assert partial is not None, "no snapshot was begun"
                partial.append(data)
            case AbandonSnapshot():
                assert partial is not None, "no snapshot was begun"
                self._partial = None
                partial.abandon()
            case ReplaceLog(snapshot_id):
                if partial is not None:
                    await self._on_thread(partial.finish)
                    self._partial = None
                    self._log.snapshots.adopt(partial)
                logger.info("metadata log goes on at snapshot %d-%d", *snapshot_id)
                self._remove_later(self._log.replace_by(snapshot_id))
                await self._load_snapshot()

    async def _save(self, election: Election) -> None:
        logger.info("metadata quorum: epoch %d, leader %d", *election)
        is_same = election.epoch == self._state.leader_epoch
        vote = self._state[2:] if is_same else QuorumState()[2:]
        self._state = QuorumState(election.epoch, election.leader_id, *vote)
        version, voters = self._feed.quorum.kraft_version, tuple(self._settings.voters)
        await self._on_thread(lambda: self._log.write_quorum_state(self._state, version, voters))

    # The image

    async def _load_snapshot(self) -> None:
        snapshot_id = self._log.snapshots.newest
        assert snapshot_id is not None, "there is no snapshot to load"
        await self._feed.load_snapshot(snapshot_id)
        self._own_snapshots.note_loaded()
        self._know_voters()

    async def _feed_what_is_committed(self) -> None:
        """After the first answer of the leader: what was committed before is not known to be so."""
        if self._leader_has is None:
            return
        quorum = self._feed.quorum
        await self._feed.advance(self._log.log.high_watermark)
        if self._feed.quorum is not quorum:
            self._know_voters()
        is_behind = self._feed.next_offset < self._leader_has or not self._feed.has_seen_record
        if not (is_behind or self.caught_up.is_set()):
            await self._install()

    async def _install(self) -> None:
        offset = self._feed.next_offset - 1
        logger.info("metadata caught up at offset %d", offset)
        steps = self._feed.loader.install_in_steps(self._publishers)
        async for _ in self._parts.loop.slices().each(steps):
            pass
        self.caught_up.set()

    def _know_voters(self) -> None:
        """Take the addresses of voters from the log, where it has them."""
        voters = self._feed.quorum.voters
        if voters is None:
            return
        listener = self._settings.listener
        addresses: Mapping[int, Address] = {
            voter.voter_id: (endpoint.host, endpoint.port)
            for voter in voters.voters
            for endpoint in reversed(voter.endpoints)  # the first of them counts
            if listener in ("", endpoint.name)
        }
        self._observer.voter_addresses = addresses

    # Files

    def _keep_house(self) -> None:
        now_ms = self._parts.loop.clock.monotonic_ms()
        self._own_snapshots.begin_if_due()
        written = self._own_snapshots
        removed, written.removed = written.removed, []
        if now_ms >= self._clean_at_ms:
            self._clean_at_ms = now_ms + CLEANING_INTERVAL_MS
            removed += self._log.clean(self._parts.loop.clock.now_ms())
        self._remove_later(removed)
        filesystem = self._log.log.directory.disk.filesystem
        with self._log.log.directory:
            for path in self._removals.take(now_ms):
                filesystem.remove(path)

    def _remove_later(self, paths: Sequence[str]) -> None:
        if paths:
            now_ms = self._parts.loop.clock.monotonic_ms()
            self._removals.add(paths, now_ms + self._settings.delete_delay_ms)

    async def _on_thread(self, work: Callable[[], None]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._parts.disk_threads, work)

    def _view(self) -> LogView:
        log = self._log.log
        return LogView(
            log.log_end_offset,
            log.high_watermark,
            self._log.epochs,
            self._log.snapshots.newest,
        )
