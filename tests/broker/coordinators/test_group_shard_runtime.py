"""The runtime of a shard as the port by which its deadlines go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.broker.coordinators.group_broker import GROUP, GroupBroker, run_group_broker

if TYPE_CHECKING:
    from pathlib import Path

HOUR_MS = 3_600_000


def test_timers_clock_goes_on_when_the_wall_clock_is_set_back(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.find_coordinator()
        await broker.stable_group()
        timers = broker.groups.shard_for(GROUP)
        before_ms = timers.now_ms

        broker.clock.ms += 5_000
        broker.clock.wall_ahead_ms = -HOUR_MS

        assert timers.now_ms == before_ms + 5_000

    run_group_broker(tmp_path, scenario)
