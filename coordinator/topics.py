"""Topics as groups see them, and the hash by which a group detects their changes."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple, Protocol

from coordinator.xxh3 import xxh3_64

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from uuid import UUID

NO_HASH = 0
"""The hash of a group that subscribes to no topic that exists."""


class TopicView(NamedTuple):
    """One topic that exists."""

    name: str
    topic_id: UUID
    partition_count: int
    revision: int
    """Changes whenever anything of the topic may have changed."""


class Topics(Protocol):
    """The topics of the cluster, as this broker knows them now."""

    @property
    def revision(self) -> int:
        """Grows with every change of anything."""

    @property
    def created_revision(self) -> int:
        """The revision in which the latest topic appeared."""

    def find(self, name: str) -> TopicView | None:
        """A topic by name."""

    def name_of(self, topic_id: UUID) -> str | None:
        """The name of the topic that has this id."""

    def names(self) -> Collection[str]:
        """All names; they may change while they are walked."""

    def racks(self, name: str) -> Sequence[Sequence[str]]:
        """Known racks of the replicas, for each partition."""


class TopicHashes:
    """Hashes of topics, kept until the topic changes."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._known: dict[str, tuple[int, int]] = {}
        """Revision and hash of topics that groups have requested."""

    def of_group(self, names: Iterable[str]) -> int:
        """The hash over those of the topics that exist, as the signed number that is stored."""
        hashes = [struct.pack("<Q", known) for known in map(self._of, sorted(names)) if known >= 0]
        if not hashes:
            return NO_HASH
        value = xxh3_64(b"".join(hashes))
        return value - (1 << 64) if value >> 63 else value

    def missing(self, names: Iterable[str]) -> list[str]:
        """Return the topics whose hashes are not cached; each costs 20 microseconds or more."""
        return [name for name in names if not self._is_fresh(name)]

    def prepare(self, name: str) -> None:
        """Compute the hash of one topic, so that `of_group` finds it."""
        self._of(name)

    def forget(self, names: Iterable[str]) -> None:
        """Let go of topics that no group subscribes to any more."""
        for name in names:
            self._known.pop(name, None)

    def _is_fresh(self, name: str) -> bool:
        view = self._topics.find(name)
        known = self._known.get(name)
        return view is None or (known is not None and known[0] == view.revision)

    def _of(self, name: str) -> int:
        """The topic's hash; -1 if it does not exist."""
        view = self._topics.find(name)
        if view is None:
            self._known.pop(name, None)
            return -1
        known = self._known.get(name)
        if known is None or known[0] != view.revision:
            known = (view.revision, xxh3_64(_described(view, self._topics.racks(name))))
            self._known[name] = known
        return known[1]


def _described(view: TopicView, racks: Sequence[Sequence[str]]) -> bytes:
    """Encode the input of `Utils.computeTopicHash`: strings as UTF-16 followed by their length."""
    raw = view.topic_id.bytes
    parts = [b"\x00", raw[7::-1], raw[:7:-1], _text(view.name)]
    parts.append(struct.pack("<i", view.partition_count))
    for index, names in enumerate(racks):
        parts.append(struct.pack("<i", index))
        for rack in sorted(names):
            text = _text(rack)
            parts += (text[-4:], text)
    return b"".join(parts)


def _text(value: str) -> bytes:
    encoded = value.encode("utf-16-le", "surrogatepass")
    return encoded + struct.pack("<i", len(encoded) // 2)
