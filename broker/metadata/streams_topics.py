"""Internal topics of Kafka Streams applications that are being created, or could not be.

Every heartbeat of a group requests the missing topics. A topic is created by one request at a time,
and after a failure not again for two heartbeats, which report the reason to the application.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_FAILURES: Final = 1_000
"""Failures that are remembered; of more, the first to expire are forgotten. As in Apache Kafka."""


class _Failure(NamedTuple):
    message: str
    until_ms: int


class StreamsTopics:
    """By topic name. `GroupCoordinators.streams_topics`."""

    def __init__(self) -> None:
        self._under_way: set[str] = set()
        self._failures: dict[str, _Failure] = {}

    def begin(self, names: Iterable[str], now_ms: int) -> list[str]:
        """The topics to create now; each must then be `created` or `failed`."""
        wanted = [
            name
            for name in names
            if name not in self._under_way and self._failure(name, now_ms) is None
        ]
        self._under_way.update(wanted)
        return wanted

    def created(self, name: str) -> None:
        """The topic is there."""
        self._under_way.discard(name)

    def failed(self, name: str, message: str, now_ms: int, until_ms: int) -> None:
        """Note a failure to create a topic, which is not retried before `until_ms`."""
        self._under_way.discard(name)
        self._failures.pop(name, None)
        self._failures[name] = _Failure(message, until_ms)
        if len(self._failures) > MAX_FAILURES:
            self._failures = {
                each: failure
                for each, failure in self._failures.items()
                if failure.until_ms > now_ms
            }
        while len(self._failures) > MAX_FAILURES:
            first = min(self._failures, key=lambda each: self._failures[each].until_ms)
            del self._failures[first]

    def failures(self, names: Iterable[str], now_ms: int) -> dict[str, str]:
        """Reasons of recent failures to create topics."""
        found = {name: self._failure(name, now_ms) for name in names}
        return {name: failure.message for name, failure in found.items() if failure is not None}

    def _failure(self, name: str, now_ms: int) -> _Failure | None:
        failure = self._failures.get(name)
        if failure is None or failure.until_ms > now_ms:
            return failure
        del self._failures[name]
        return None
