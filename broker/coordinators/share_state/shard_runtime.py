"""One partition of `__share_group_state` led by this broker: the state of share groups on a log."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from broker.coordinators.shard_runtime import ShardRuntime, ShardServices, Stage
from coordinator.share_state import records
from coordinator.share_state.effects import ShareStateEffects
from coordinator.share_state.records import ShareStateRecord
from coordinator.share_state.shard import ShareStateShard
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from broker.partitions.partition import Partition
    from coordinator.share_state.settings import ShareStateSettings
    from coordinator.topics import Topics

logger = logging.getLogger(__name__)


class ShareStateShardRuntime(ShardRuntime[ShareStateRecord]):
    """Runs a `ShareStateShard`, and drops what its log need not keep."""

    def __init__(
        self,
        partition: Partition,
        surroundings: ShardServices,
        settings: ShareStateSettings,
        topics: Topics,
    ) -> None:
        self.share_states = ShareStateShard(settings, topics)
        super().__init__(partition, surroundings, records, self.share_states.replay)

    def apply(self, record: ShareStateRecord, log_offset: int, producer_id: int) -> None:  # noqa: ARG002
        """Apply one record of the log; the shard notes where it lies."""
        self.share_states.replay(record, log_offset)

    def loaded(self, now_ms: int) -> ShareStateEffects:  # noqa: ARG002  (no timers here)
        """No effects: no timers are due."""
        return ShareStateEffects()

    def unloaded(self) -> ShareStateEffects:
        """No request is parked here."""
        return ShareStateEffects()

    @property
    def content(self) -> str:
        """The number of share-partitions, in words."""
        return f"the state of {len(self.share_states.share_partitions)} share-partitions"

    def prune(self) -> None:
        """Drop the records that later ones say again, once those are committed."""
        offset = self.share_states.first_needed_offset

        def committed(code: ErrorCode) -> None:
            if code is not ErrorCode.NONE or self.stage is not Stage.ACTIVE:
                return  # the next leader, or the next time
            try:
                if self.partition.log.advance_log_start_offset(offset):
                    self.partition.wake()
            except ApiError as error:
                name = f"{self.partition.topic}-{self.partition.index}"
                logger.warning("%s: not pruned up to offset %d: %s", name, offset, error)

        self.when_committed(committed)
