"""End offsets of partitions as reported by their leaders: this broker or another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.coordinators.share_state.end_offsets import EndOffsets
from protocol.errors import ErrorCode
from tests.broker.coordinators.group_broker import GroupBroker, run_group_broker

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from protocol.schema import Request, Response

TOPIC = "t"
OTHER = 7


class Other:
    """Another broker, for which this one answers, or which is silent."""

    def __init__(self, broker: GroupBroker, *, is_silent: bool = False) -> None:
        self._broker = broker
        self._is_silent = is_silent

    def ask(
        self,
        where: tuple[int, str],
        request: Request,
        version: int,
        answered: Callable[[Response | None], None],
    ) -> None:
        assert where[0] == 0

        async def work() -> None:
            answered(None if self._is_silent else await self._broker.ask(request, version))

        self._broker.spawn(work(), "another broker")


def ends(broker: GroupBroker, broker_id: int, other: Any = None) -> EndOffsets:
    return EndOffsets(broker_id, broker.metadata, broker.replicas, other)


def test_end_offsets_are_read_from_the_partition_leaders(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.create_topic(TOPIC)
        wanted = [(TOPIC, 0), (TOPIC, 5), ("nobodys", 0)]
        unknown = dict.fromkeys(wanted[1:], ErrorCode.LEADER_NOT_AVAILABLE)
        here = await ends(broker, 0).of(wanted)
        assert here == {(TOPIC, 0): 0, **unknown}
        there = await ends(broker, OTHER, Other(broker)).of(wanted)
        assert there == here
        lost = await ends(broker, OTHER, Other(broker, is_silent=True)).of(wanted)
        assert lost == {(TOPIC, 0): ErrorCode.NETWORK_EXCEPTION, **unknown}

    run_group_broker(tmp_path, scenario)
