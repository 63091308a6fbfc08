"""The numbers that clients have pushed, the newest of each, until their client is forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from uuid import UUID

    from broker.telemetry.otlp import Labels, Point


class Sample(NamedTuple):
    """One number of one client."""

    name: str
    labels: dict[str, str]
    value: float


class _OfClient:
    __slots__ = ("keep_until_ms", "labels", "values")

    def __init__(self, labels: Mapping[str, str]) -> None:
        self.labels = labels
        self.values: dict[tuple[str, Labels], float] = {}
        self.keep_until_ms = 0


class Series:
    """At most `most` series; further ones are counted and left out, until others expire."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._clients: dict[UUID, _OfClient] = {}
        self._count = 0
        self.left_out = 0
        """Data points so far."""

    def __len__(self) -> int:
        return self._count

    def take(
        self,
        instance_id: UUID,
        labels: Mapping[str, str],
        points: list[Point],
        keep_until_ms: int,
    ) -> None:
        """Keep a client's pushed metrics; `labels` identify the client."""
        client = self._clients.get(instance_id)
        if client is None:
            client = self._clients[instance_id] = _OfClient(labels)
        client.keep_until_ms = keep_until_ms
        for point in points:
            key = point.name, point.labels
            before = client.values.get(key)
            if before is None:
                if self._count >= self._most:
                    self.left_out += 1
                    continue
                self._count += 1
            client.values[key] = point.value + (before or 0.0) if point.is_delta else point.value
        if not client.values:
            del self._clients[instance_id]

    def forget(self, instance_id: UUID) -> None:
        """A client is gone."""
        gone = self._clients.pop(instance_id, None)
        if gone is not None:
            self._count -= len(gone.values)

    def expire(self, now_ms: int) -> None:
        """Forget clients that have not pushed for long."""
        for instance_id in [i for i, one in self._clients.items() if one.keep_until_ms < now_ms]:
            self.forget(instance_id)

    def samples(self) -> Iterator[Sample]:
        """All of them; on any thread, RuntimeError if there are others meanwhile."""
        for client in list(self._clients.values()):
            for (name, labels), value in list(client.values.items()):
                yield Sample(name, {**dict(labels), **client.labels}, value)
