"""franz-go (Go) in groups: classic, of the consumer protocol, moving there, and share groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.interop.coordinators import test_consumer_protocol, test_share_consumers
from tests.interop.go import franz_go

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.interop.conftest import NewBroker
    from tests.support.brokers.broker_process import BrokerProcess

SETTINGS = {
    **test_consumer_protocol.QUICK,
    **test_share_consumers.QUICK,
    "group.initial.rebalance.delay.ms": "0",
}
ONCE = "2; read 60, again 0, committed 60, deleted true"
STICKY = "cooperative-sticky"
EXPECTED = {
    "classic": f"classic Stable {STICKY} {ONCE}",
    "consumer": f"consumer Stable uniform {ONCE}",
    "moved": f"classic Stable {STICKY} 1, consumer Stable uniform 2, consumer Stable uniform 1",
    "shared": "share Stable simple 2; 2000 records, each 1 time",
    "judged": "0x1 1x1 2x1 3x1 4x1 5x1 6x1 7x1 8x1, 1x2 4x2 7x2, 0 more",
}
"""Output of each scenario against Apache Kafka 4; `groups.go` explains the numbers."""


@pytest.fixture(scope="module")
def quick(
    new_broker: NewBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    """A broker whose members heartbeat often."""
    process = new_broker(tmp_path_factory.mktemp("quick"), SETTINGS)
    process.start()
    try:
        yield process
    finally:
        process.kill()


def test_franz_go_group_scenarios_print_the_same_as_with_apache(quick: BrokerProcess) -> None:
    assert franz_go.run_scenarios(quick.bootstrap, *EXPECTED) == EXPECTED
