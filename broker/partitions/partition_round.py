"""A step taken with all partitions that need it, in slices: there may be tens of thousands.

Most rest, and seeing that costs less than asking before each whether others are to be served.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker.partitions.partition import Partition
    from broker.partitions.replicas import Replicas
    from broker.runtime.event_loop import BackgroundLoop


LOOKED_AT: Final = 1000
"""Partitions passed over in one go: a fifth of a millisecond."""


def has_followers(partition: Partition) -> bool:
    """Whether this broker leads it, and others follow."""
    return bool(partition.machine.in_sync.followers)


class PartitionRound:
    """One round at a time, however often it is asked for."""

    def __init__(
        self,
        replicas: Replicas,
        loop: BackgroundLoop,
        step: Callable[[Partition], None],
        name: str,
        is_concerned: Callable[[Partition], bool] = lambda _: True,
    ) -> None:
        """`name` says what a round is about, in log lines and metrics."""
        self._replicas = replicas
        self._loop = loop
        self._is_concerned = is_concerned
        self._step = step
        self._name = name
        self._is_wanted = False
        self._is_under_way = False

    def begin(self) -> None:
        """Take the step with each that it concerns; once more if a round is under way."""
        self._is_wanted = True
        if not self._is_under_way:
            self._is_under_way = True
            self._loop.spawn(self._run(), self._name)

    async def _run(self) -> None:
        try:
            while self._is_wanted:
                self._is_wanted = False
                async for partition in self._loop.slices().each(self._concerned()):
                    if partition is not None:
                        self._take(partition)
        finally:
            self._is_under_way = False

    def _concerned(self) -> Iterator[Partition | None]:
        """Those to take the step with, and None at times for those passed over."""
        for number, partition in enumerate(list(self._replicas), 1):
            if self._is_concerned(partition):
                yield partition
            elif not number % LOOKED_AT:
                yield None

    def _take(self, partition: Partition) -> None:
        """One that raises costs the others nothing; one that was given up meanwhile is left out."""
        if self._replicas.partition(partition.topic, partition.index) is not partition:
            return
        try:
            self._step(partition)
        except Exception as error:  # noqa: BLE001 - noted
            error.add_note(f"partition {partition.topic}-{partition.index}")
            self._loop.note(self._name, error)
