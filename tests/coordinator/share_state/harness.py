"""A shard of share state with a list for a log, which can be shortened and read back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coordinator.share_state import records
from coordinator.share_state.settings import ShareStateSettings
from coordinator.share_state.shard import ShareStateShard
from coordinator.share_state.state import SharePartition, StateBatch, StateChange
from protocol.errors import ApiError, ErrorCode
from tests.coordinator.few_topics import FewTopics
from tests.coordinator.harness import Inbox

if TYPE_CHECKING:
    from collections.abc import Iterable

    from coordinator.share_state.effects import ShareStateEffects
    from coordinator.share_state.records import ShareStateRecord

GROUP = "readers"
TOPIC = "t"


class Harness:
    """A shard and everything around it; its records are committed at once."""

    def __init__(self, settings: ShareStateSettings | None = None) -> None:
        self.settings = settings or ShareStateSettings()
        self.now_ms = 1_000_000
        self.topics = FewTopics()
        self.topic_id = self.topics.put(TOPIC, 2)
        self.append_error: ErrorCode | None = None
        self.log: list[tuple[bytes, bytes | None]] = []
        self.log_start = 0
        self.shard = ShareStateShard(self.settings, self.topics)

    def key(self, partition: int = 0, group_id: str = GROUP) -> SharePartition:
        return SharePartition(group_id, self.topic_id, partition)

    # The broker's part

    def append(self, stored: Iterable[ShareStateRecord]) -> None:
        for record in stored:
            encoded = (records.encode_key(record), records.encode_value(record))
            self.log.append(encoded)
            self.shard.replay(record, len(self.log) - 1)

    def run(self, effects: ShareStateEffects) -> None:
        for answer in effects.answers:
            answer.reply.complete(answer.response)
        if self.append_error is not None and effects.records:
            for refused in effects.committed_answers:
                refused.reply.complete(refused.refuse(self.append_error))
            return
        self.append(effects.records)
        for committed in effects.committed_answers:
            committed.reply.complete(committed.response)

    def prune(self) -> None:
        """Drop what the shard says that it does not need."""
        self.log_start = max(self.log_start, self.shard.first_needed_offset)

    def reloaded(self) -> ShareStateShard:
        """Return the shard that another broker loads from the log."""
        other = ShareStateShard(self.settings, self.topics)
        for offset, (key, value) in enumerate(self.log[self.log_start :], self.log_start):
            record = records.decode(key, value)
            assert record is not None
            other.replay(record, offset)
        return other

    # Requests; an answer is returned, an error raised

    def initialise(self, epoch: int = 1, start: int = -1, partition: int = 0) -> None:
        reply = Inbox()
        key = self.key(partition)
        self.run(self.shard.handle_initialise(key, epoch, start, reply, self.now_ms))
        self.answer(reply)

    def write(
        self,
        *batches: tuple[int, int, int, int],
        epochs: tuple[int, int] = (1, 0),
        start: int = -1,
        count: int = 0,
        partition: int = 0,
    ) -> None:
        reply = Inbox()
        ranges = tuple(StateBatch(*each) for each in batches)
        change = StateChange(*epochs, start, count, ranges)
        self.run(self.shard.handle_write(self.key(partition), change, reply, self.now_ms))
        self.answer(reply)

    def read(self, leader_epoch: int = 0, partition: int = 0) -> Any:
        reply = Inbox()
        self.run(self.shard.handle_read(self.key(partition), leader_epoch, reply, self.now_ms))
        return self.answer(reply)

    def summary(self, partition: int = 0) -> Any:
        reply = Inbox()
        self.run(self.shard.handle_read_summary(self.key(partition), reply))
        return self.answer(reply)

    def delete(self, partition: int = 0) -> None:
        reply = Inbox()
        self.run(self.shard.handle_delete(self.key(partition), reply))
        self.answer(reply)

    @staticmethod
    def answer(reply: Inbox) -> Any:
        if isinstance(reply.response, ApiError):
            raise reply.response
        return reply.response
