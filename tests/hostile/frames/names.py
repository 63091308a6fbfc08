"""Names in hostile requests: topics, groups and transactional ids that are theirs to break.

There are few, so that frames meet the state that others left. The controls have names of their own,
which no frame contains.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uuid import UUID

PREFIX = "fuzz"
TOPICS = tuple(f"{PREFIX}-topic-{number}" for number in range(10))
"""Exist when a run begins; some frames delete them, others create them again."""

BULKY_TOPIC = f"{PREFIX}-bulky"
"""Holds large records, for those who fetch them and never read the answer."""

INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state")
ODD_TOPICS = ("", ".", "..", "a/b", "x" * 249, "x" * 250, f"{PREFIX}.topic_1", f"{PREFIX}_topic.1")
GROUPS = tuple(f"{PREFIX}-group-{number}" for number in range(8))
SHARE_GROUPS = tuple(f"{PREFIX}-share-{number}" for number in range(4))
CONSUMER_GROUPS = tuple(f"{PREFIX}-consumer-{number}" for number in range(4))
STREAMS_GROUPS = tuple(f"{PREFIX}-streams-{number}" for number in range(4))
"""A group is of the kind of its first member, so each kind has some to itself."""
MEMBERS = tuple(f"{PREFIX}-member-{number}" for number in range(4))
"""Members that name themselves, as those of the newer protocols do."""
TRANSACTIONS = (*(f"{PREFIX}-transaction-{number}" for number in range(8)), "a" * 40)
CLIENT_IDS = (f"{PREFIX}-client", f"{PREFIX}-other", "", None, "é" * 300, "x" * 32_767)

PARTITIONS = 4
"""Of each topic, when a run begins."""

MOST_REMEMBERED = 16


@dataclass(slots=True)
class Identifiers:
    """Identifiers given by the broker, as far as frames repeat them. Bounded."""

    topic_ids: dict[str, UUID] = field(default_factory=dict)
    members: dict[str, deque[tuple[str, int]]] = field(default_factory=dict)
    """By group: the newest members, each with the generation it last joined."""
    producers: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Producer id and epoch by transactional id; the empty one stands for idempotent producers."""
    epochs: dict[tuple[str, str], int] = field(default_factory=dict)
    """By group and member that names itself: the epoch it was told last."""
    share_epochs: dict[tuple[str, str], int] = field(default_factory=dict)
    """By group and member: the epoch of the next request of its share session."""
    acquired: dict[tuple[str, str], tuple[UUID, int, int, int]] = field(default_factory=dict)
    """By group and member: topic id, partition, first and last offset of what it got last."""
    subscription: tuple[UUID, int] | None = None
    """Instance and subscription id of the last client that asked which metrics to push."""
    log_directory: str = ""
    """The broker's log directory, from its answer."""
    sessions: deque[int] = field(default_factory=lambda: deque(maxlen=MOST_REMEMBERED))
    """Fetch sessions that may still be open."""

    def note_topic(self, name: str, topic_id: UUID) -> None:
        """A topic has this id now; ids of others than `TOPICS` are nobody's business."""
        if name in TOPICS:
            self.topic_ids[name] = topic_id

    def note_member(self, group: str, member: str, generation: int) -> None:
        """A group gave this member id."""
        if group in GROUPS and member:
            newest = self.members.setdefault(group, deque(maxlen=MOST_REMEMBERED))
            newest.append((member, generation))

    def note_producer(self, transaction: str, producer_id: int, epoch: int) -> None:
        """A producer was initialised."""
        if producer_id >= 0:
            self.producers[transaction] = producer_id, epoch
