"""One partition of a fetch session: its fetch position, and the state last sent to its reader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from uuid import UUID

    from broker.fetch.fetch_sessions import FetchSession
    from broker.replication.followers import Follower
    from protocol.messages.fetch import FetchRequest, FetchResponse

UNSENT: Final = -1


class Growing(Protocol):
    """A partition, as far as needed to know when to read it again."""

    def watch_as_follower(self, watcher: FetchedPartition) -> None:
        """Call `watcher.check` when its log grows or its leadership changes."""

    def unwatch(self, watcher: FetchedPartition) -> None:
        """Undo `watch_as_follower`."""


class FetchedPartition:
    """A reader's fetch position in one partition, and the state last sent."""

    __slots__ = (
        "_follower",
        "_resting_on",
        "_session",
        "current_leader_epoch",
        "fetch_offset",
        "index",
        "known_name",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "sent_high_watermark",
        "sent_log_start_offset",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: str, topic_id: UUID, index: int) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.known_name = ""
        """The topic's name when it was last there; "" for an id that never was."""
        self.index = index
        self.current_leader_epoch = UNSENT
        self.sent_high_watermark = UNSENT
        self.sent_log_start_offset = UNSENT
        self._resting_on: Growing | None = None
        self._follower: Follower | None = None
        self._session: FetchSession | None = None

    def rest(self, session: FetchSession, partition: Growing, follower: Follower) -> None:
        """Rest: there is nothing to send until `partition` calls `check`.

        In a closed session nothing rests: it would never be roused.
        """
        if session.is_closed or self not in session.active:  # forgotten meanwhile, in slices
            return
        del session.active[self]
        self._session, self._resting_on, self._follower = session, partition, follower
        follower.rest(session)
        partition.watch_as_follower(self)

    def rouse(self) -> None:
        """End the rest."""
        session, partition, follower = self._session, self._resting_on, self._follower
        if session is not None and partition is not None and follower is not None:
            self._session = self._resting_on = self._follower = None
            partition.unwatch(self)
            follower.rouse(session)
            session.active[self] = None

    def check(self) -> None:
        """The partition has grown, or its leadership has changed."""
        session = self._session
        self.rouse()
        if session is not None and session.waiting is not None:
            session.waiting.look_again()

    def want(self, partition: FetchRequest.Topic.Partition) -> None:
        """Take over the position in the request.

        In a new leader epoch the reader may have discarded the last response, so it is sent all
        again.
        """
        if partition.current_leader_epoch != self.current_leader_epoch:
            self.sent_high_watermark = UNSENT
        self.fetch_offset = partition.fetch_offset
        self.max_bytes = partition.partition_max_bytes
        self.current_leader_epoch = partition.current_leader_epoch
        self.last_fetched_epoch = partition.last_fetched_epoch
        self.log_start_offset = partition.log_start_offset

    def is_news(self, answer: FetchResponse.Response.Partition) -> bool:
        """Return whether the response differs from the last one (KIP-227)."""
        return bool(
            answer.error_code
            or answer.records
            or answer.diverging_epoch.epoch >= 0
            or answer.preferred_read_replica >= 0
            or answer.high_watermark != self.sent_high_watermark
            or answer.log_start_offset != self.sent_log_start_offset
        )

    def note_sent(self, answer: FetchResponse.Response.Partition) -> bool:
        """Remember the sent response; return whether it differs from the last one (KIP-227)."""
        if answer.error_code or answer.diverging_epoch.epoch >= 0:
            # The reader first handles that, and is sent all this afterwards.
            self.sent_high_watermark = UNSENT
            return True
        is_news = self.is_news(answer)
        self.sent_high_watermark = answer.high_watermark
        self.sent_log_start_offset = answer.log_start_offset
        return is_news
