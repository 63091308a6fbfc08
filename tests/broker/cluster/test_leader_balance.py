"""Leaders are balanced now and then; that it cannot be done just then is no failure."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from broker.cluster.cluster import Cluster
from broker.runtime.clock import SystemClock
from broker.runtime.event_loop import BackgroundLoop
from broker.runtime.timers import Timers
from config.broker import BrokerConfig
from tests.controller import harness
from tests.controller.breaking_store import BreakingStore
from tests.controller.brokers.test_broker_changes import create
from tests.controller.harness import turns
from tests.controller.partitions.test_reassignment import caught_up
from tests.support.broker_parts.slices import one_step_at_a_time
from tests.support.broker_parts.supervised import end, supervision

AWAY = cast("Any", None)


def test_leader_balance_that_zookeeper_interrupts_is_left_to_the_next_check() -> None:
    async def scenario(controllers: harness.Cluster) -> None:
        member = controllers.members[0]
        assert isinstance(member.store, BreakingStore)
        timers, clock = Timers(asyncio.get_running_loop()), SystemClock()
        supervised = supervision(timers)
        loop = BackgroundLoop(clock, timers, supervised.spawn, one_step_at_a_time)
        others = (AWAY,) * 3
        config = BrokerConfig()
        cluster = Cluster(config, loop, *others, member.controller, *others)
        await create(controllers, 1, 2)
        await controllers.kill(1)
        await controllers.add(1)
        await caught_up(controllers, 2, 1, leader=2)  # though 1 is preferred
        member.store.is_away = True

        cluster._balance()
        await turns()

        assert not supervised.failures
        assert not supervised._tasks
        await end(supervised)

    async def main() -> None:
        controllers = harness.Cluster()
        controllers.connect = lambda: BreakingStore(controllers.ensemble)
        await controllers.start(0, 1, 2)
        try:
            await scenario(controllers)
        finally:
            await controllers.stop()

    asyncio.run(main())
