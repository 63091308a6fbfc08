"""A step taken with all partitions that need it, in slices: there may be tens of thousands."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker.partitions.partition import Partition
    from broker.partitions.replicas import Replicas
    from broker.runtime.event_loop import BackgroundLoop


class PartitionRound:
    """One round at a time, however often it is requested."""

    def __init__(
        self,
        replicas: Replicas,
        loop: BackgroundLoop,
        step: Callable[[Partition], None],
        name: str,
        concerned: Iterable[Partition] | None = None,
    ) -> None:
        """`name` is the subject of a round, in log lines and metrics.

        A round covers `concerned` as of its start; all replicas, if that is None.
        """
        self._replicas = replicas
        self._loop = loop
        self._concerned = replicas if concerned is None else concerned
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
                async for partition in self._loop.slices().each(list(self._concerned)):
                    self._take(partition)
        finally:
            self._is_under_way = False

    def _take(self, partition: Partition) -> None:
        """Handle one; an error does not affect the others, and a removed one is left out."""
        if self._replicas.partition(partition.topic, partition.index) is not partition:
            return
        try:
            self._step(partition)
        except Exception as error:  # noqa: BLE001 - noted
            error.add_note(f"partition {partition.topic}-{partition.index}")
            self._loop.note(self._name, error)
