"""Drawn damage of delay indexes, with drawn delays and changes of leaders: each record once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from storage.errors import DamagedDelaysError
from tests.broker.delivery.replicated import DELAYING
from tests.broker.delivery.test_damaged_delays import change
from tests.broker.delivery.test_delivery_model import Scenario
from tests.support.broker_parts.virtual_time import run_in_virtual_time

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


class DamagedScenario(Scenario):
    """The scenario of the model, in which a bit of an index is another, or some of it is gone."""

    damages = 0

    def steps(self) -> dict[Callable[[], Coroutine[Any, Any, object]], int]:
        return {**super().steps(), self.damage: 6, self.change_leader: 3}

    async def damage(self) -> None:
        replica = self.random.choice([self.leader, *self.replicas])
        segment = self.random.choice(list(replica.log.segments))
        segment.write_index_entries()
        if segment.delays is not None and replica.disk.exists(segment.delays.path):
            self.damages += 1
            change(replica, segment, self._drawn)

    def _drawn(self, data: bytes) -> bytes:
        if not data:
            return data
        at = self.random.randrange(len(data))
        if self.random.random() < 0.3:
            return data[:at]
        changed = bytearray(data)
        changed[at] ^= 1 << self.random.randrange(8)
        return bytes(changed)

    async def kill_leader(self) -> None:
        """Do nothing: an index damaged before a crash is not detected after it (GAPS.md)."""
        await self.change_leader()

    async def kill_follower(self) -> None:
        await self.replicate()

    async def retain(self) -> None:
        """Run retention, which reports a damaged index and has it rebuilt."""
        try:
            await super().retain()
        except DamagedDelaysError:
            for replica in self.replicas:
                replica.log.config = DELAYING

    async def settle(self) -> None:
        await self.change_leader()
        await super().settle()


@pytest.mark.parametrize("seed", range(24))
def test_each_record_is_delivered_once_in_order_despite_drawn_damage(seed: int) -> None:
    scenario = DamagedScenario(seed)
    run_in_virtual_time(scenario.run())
    assert scenario.damages
    scenario.check()
