"""Snapshots that this node makes of its own image."""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import TYPE_CHECKING, Final

from controller.image.snapshot import snapshot_records
from protocol.metadata_log.snapshots import SnapshotBatches, SnapshotId

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor

    from broker.metadata_log.metadata_feed import MetadataFeed
    from broker.metadata_log.settings import SnapshotSettings
    from broker.runtime.event_loop import BackgroundLoop
    from controller.image.metadata_image import MetadataImage
    from protocol.metadata_log.snapshots import QuorumInForce
    from storage.metadata_log.metadata_log import MetadataLog

RECORDS_PER_BATCH: Final = 200
"""Few: a batch is made at once."""


class ImageSnapshots:
    """One at a time, each after so many bytes of the log, or so long, since the last."""

    def __init__(
        self,
        log: MetadataLog,
        feed: MetadataFeed,
        settings: SnapshotSettings,
        loop: BackgroundLoop,
        disk_threads: Executor,
    ) -> None:
        self._log = log
        self._feed = feed
        self._settings = settings
        self._loop = loop
        self._disk_threads = disk_threads
        self._last_ms = loop.clock.monotonic_ms()
        self._is_writing = False
        self.removed: list[str] = []
        """Files that may be removed later; for the owner to take."""

    def note_loaded(self) -> None:
        """A snapshot of the leader was loaded, which does for one of this node's."""
        self._last_ms = self._loop.clock.monotonic_ms()

    def begin_if_due(self) -> None:
        """Begin one in a task of its own, if it is due and the image is at the end of a batch."""
        feed = self._feed
        if self._is_writing or not feed.is_at_image or not self._is_due():
            return
        self._last_ms = self._loop.clock.monotonic_ms()
        feed.bytes_since_snapshot = 0
        provenance = feed.loader.image.provenance
        snapshot_id = SnapshotId(provenance.offset + 1, provenance.epoch)
        if snapshot_id not in self._log.snapshots.ids:
            self._is_writing = True
            work = self._write(snapshot_id, feed.loader.image, feed.quorum)
            self._loop.spawn(work, f"metadata snapshot {snapshot_id.end_offset}")

    def _is_due(self) -> bool:
        if self._feed.bytes_since_snapshot >= self._settings.max_bytes:
            return True
        interval_ms = self._settings.max_interval_ms
        waited_ms = self._loop.clock.monotonic_ms() - self._last_ms
        return interval_ms > 0 and waited_ms >= interval_ms and self._feed.bytes_since_snapshot > 0

    async def _write(
        self, snapshot_id: SnapshotId, image: MetadataImage, quorum: QuorumInForce
    ) -> None:
        try:
            partial = self._log.snapshots.begin(snapshot_id)
            try:
                batches = snapshot_batches(image, quorum, self._loop.clock.now_ms())
                async for batch in self._loop.slices().each(batches):
                    partial.append(batch)
            except BaseException:
                partial.abandon()
                raise
            running = asyncio.get_running_loop()
            await running.run_in_executor(self._disk_threads, partial.finish)
            self.removed += self._log.adopt(partial)
        finally:
            self._is_writing = False


def snapshot_batches(
    image: MetadataImage, quorum: QuorumInForce, now_ms: int
) -> Iterator[bytearray]:
    """The batches of a snapshot of `image`, one at a time."""
    batches = SnapshotBatches(image.provenance.epoch, now_ms)
    yield batches.header(image.provenance.timestamp_ms, quorum)
    records = snapshot_records(image)
    while piece := list(islice(records, RECORDS_PER_BATCH)):
        yield batches.data(piece)
    yield batches.footer()
