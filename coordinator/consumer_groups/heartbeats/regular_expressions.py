"""Subscriptions by regular expression, whose topics are resolved outside the heartbeats.

A heartbeat with a new expression is answered before the expression has been matched against the
topics; the matching topics are stored when they are known, and the group goes to its next epoch. It
is matched again when topics have appeared, every `group.consumer.regex.refresh.interval.ms`, and no
more often than every ten seconds. Only topics that the member may describe whose heartbeat began it
are matched, as in Apache Kafka.
"""

from __future__ import annotations

import enum
import logging
from typing import TYPE_CHECKING

from coordinator.consumer_groups.group import rematch
from coordinator.consumer_groups.records import (
    ResolvedPattern,
    epoch_record,
    pattern_record,
    pattern_tombstone,
)
from coordinator.effects import Effects
from coordinator.patterns import Pattern
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet

    from coordinator.consumer_groups.group import ConsumerGroup
    from coordinator.consumer_groups.member import ConsumerMember
    from coordinator.consumer_groups.shard_parts import ShardParts
    from coordinator.effects import Steps

logger = logging.getLogger(__name__)

SHORTEST_INTERVAL_MS = 10_000
NEVER_MS = -(2**62)
LONGEST_MATCH = 250_000
"""Instructions of an expression times bytes of a topic's name: two milliseconds at most."""
SUBJECT = "SubscribedTopicRegex"


class PatternChange(enum.Enum):
    """Change of a member's subscription by regular expression in a heartbeat."""

    NONE = enum.auto()
    UPDATED = enum.auto()
    """A new expression that has not been resolved yet."""
    RESOLVED = enum.auto()
    """A resolved expression, or no expression any more."""


class RegularExpressions:
    """Keeps the expressions of a shard's groups resolved."""

    def __init__(self, parts: ShardParts) -> None:
        self._parts = parts

    def change(  # noqa: PLR0913, PLR0917 - a heartbeat, taken apart
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        updated: ConsumerMember,
        may_describe: Callable[[str], bool],
        effects: Effects,
        now_ms: int,
    ) -> PatternChange:
        """Note a member's expression, and have all of the group resolved if that is due.

        Raises ApiError INVALID_REGULAR_EXPRESSION.
        """
        old, new = member.pattern, updated.pattern
        patterns = group.subscriptions.patterns
        change = PatternChange.NONE
        is_due = False
        if old != new:
            change = PatternChange.UPDATED
            if old and patterns[old] == 1:
                effects.records.append(pattern_tombstone(group.group_id, old))
            if not new:
                change = PatternChange.RESOLVED if old else change
            elif not patterns[new]:
                self._check_count(len(patterns) - (patterns[old or ""] == 1))
                self._compiled(new)
                is_due = True
            elif new in group.resolved:
                change = PatternChange.RESOLVED
        if not is_due and not patterns:
            return change
        watch = self._parts.watches.of(group.group_id)
        refreshed_ms = _refreshed_ms(group, now_ms)
        if watch.is_resolving or now_ms <= refreshed_ms + SHORTEST_INTERVAL_MS:
            return change
        wanted = {text for text in patterns if text != old or patterns[text] > 1}
        wanted |= {new} if new else set()
        is_due = (
            is_due
            or len(wanted) != len(group.resolved)
            or watch.resolved_revision < self._parts.topics.created_revision
            or now_ms > refreshed_ms + self._parts.settings.pattern_refresh_interval_ms
        )
        if is_due and wanted:
            watch.is_resolving = True
            effects.jobs.append(self._resolve(group.group_id, may_describe, now_ms))
        return change

    def _check_count(self, count: int) -> None:
        """Refuse one more than `count` others if those are as many as a group may have."""
        most = self._parts.settings.pattern_max_count
        if count >= most:
            reason = f"the group has {count} others, group.consumer.regex.max.count is {most}"
            raise ApiError(ErrorCode.INVALID_REGULAR_EXPRESSION, f"{SUBJECT} is refused: {reason}.")

    def _compiled(self, text: str) -> Pattern:
        return Pattern(text, self._parts.settings.pattern_max_length, SUBJECT, LONGEST_MATCH)

    def _resolve(
        self, group_id: str, may_describe: Callable[[str], bool], now_ms: int
    ) -> Steps[None]:
        """Match all expressions of a group, in steps, and store the matching topics."""
        parts = self._parts
        watch = parts.watches.of(group_id)
        try:
            group = parts.groups.find(group_id)
            if group is None:
                return
            revision = parts.topics.revision
            matched: dict[str, set[str]] = {}
            for text in list(group.subscriptions.patterns):
                matched[text] = yield from self._matches(text, may_describe)
            every: AbstractSet[str] = set().union(*matched.values())
            for name in parts.hashes.missing(every):
                parts.hashes.prepare(name)
                yield None
            if parts.groups.find(group_id) is group:
                watch.resolved_revision = revision
                resolved = {
                    text: ResolvedPattern(frozenset(names), revision, now_ms)
                    for text, names in matched.items()
                    if group.subscriptions.patterns[text]
                }
                yield self._resolved(group, resolved)
        finally:
            watch.is_resolving = False

    def _matches(self, text: str, may_describe: Callable[[str], bool]) -> Steps[set[str]]:
        names: set[str] = set()
        try:
            pattern = self._compiled(text)
            for name in list(self._parts.topics.names()):
                if pattern.matches(name) and may_describe(name):
                    names.add(name)
                yield None
        except ApiError as error:  # a log of another make, or of other limits
            logger.warning("regular expression %r matches nothing: %s", text[:100], error)
            return set()
        return names

    def _resolved(self, group: ConsumerGroup, resolved: dict[str, ResolvedPattern]) -> Effects:
        effects = Effects()
        subscriptions = group.subscriptions.copy()
        must_bump = False
        for text, new in resolved.items():
            old = group.resolved.get(text)
            if (frozenset() if old is None else old.topics) != new.topics:
                must_bump = True
                rematch(subscriptions, old, new)
            effects.records.append(pattern_record(group.group_id, text, new))
        metadata_hash = self._parts.hashes.of_group(subscriptions.topics)
        if must_bump or metadata_hash != group.metadata_hash:
            watch = self._parts.watches.of(group.group_id)
            watch.checked_revision = self._parts.topics.revision
            watch.checked_epoch = group.epoch + 1
            effects.records.append(epoch_record(group.group_id, group.epoch + 1, metadata_hash))
        return effects


def _refreshed_ms(group: ConsumerGroup, now_ms: int) -> int:
    """Return the last resolution's time; NEVER_MS also if the clock was set back since."""
    resolved = next(iter(group.resolved.values()), None)
    if resolved is None or resolved.timestamp_ms > now_ms:
        return NEVER_MS
    return resolved.timestamp_ms
