"""The time of an embedded cluster: each broker has a clock, and a test advances all of them.

They advance in steps, one broker after the other, so that none is further ahead of another than a
step. With a span that is long compared to `replica.lag.time.max.ms` a step is longer than a
follower may be behind, and leaders remove followers from the ISR that had no chance to fetch: they
are back before the advance ends.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from broker.embedded.errors import NotReachedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker.embedded.cluster.cluster_broker import ClusterBroker
    from broker.embedded.cluster.metadata_ensemble import MetadataEnsemble
    from broker.embedded.machine.turned_time import TurnedTime

POLL_SECONDS: Final = 0.005
STEPS: Final = 100
"""Of a turn, of all brokers together. Fixed: a minute is turned by 600 ms at a time."""
STEPS_WITHIN: Final = 10
"""Of one broker in one of those."""


class ClusterTime:
    """Offset of each broker's clock from the machine's."""

    def __init__(self, ensemble: MetadataEnsemble) -> None:
        self._ensemble = ensemble
        self.turned: dict[int, TurnedTime] = {}
        """By broker id."""

    def advance(self, brokers: Sequence[ClusterBroker], seconds: float) -> None:
        """Turn time for all; a broker that is paused finds it turned when it goes on."""
        paused = [broker for broker in brokers if broker.is_paused]
        for _ in range(STEPS):
            for broker in brokers:
                if broker in paused:
                    self.turned[broker.broker_id].seconds += seconds / STEPS
                else:
                    broker.ask("advance", seconds / STEPS, STEPS_WITHIN)
        unheard = {broker.broker_id for broker in paused} | self._ensemble.unreachable
        self._ensemble.age(unheard, seconds)
        live = {broker.broker_id for broker in brokers if broker.is_running} - unheard
        wait_until("replicas to be in sync", lambda: not self._ensemble.out_of_sync(live))


def wait_until(what: str, is_reached: Callable[[], bool], timeout: float = 30.0) -> None:
    """Look again and again, until it is so. Raises NotReachedError."""
    until = time.monotonic() + timeout
    while not is_reached():
        if time.monotonic() > until:
            raise NotReachedError(f"waited for {what}, in vain for {timeout:g} s")
        time.sleep(POLL_SECONDS)
