"""Members of share groups: kafka-clients 4 against our broker, or Apache Kafka itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.interop.clients.java import run_program
from tests.support import jars

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.interop.conftest import NewBroker
    from tests.support.brokers.broker_process import BrokerProcess

QUICK = {
    "group.share.heartbeat.interval.ms": "200",
    "group.share.min.heartbeat.interval.ms": "200",
    "group.share.assignment.interval.ms": "100",
    "group.share.record.lock.duration.ms": "1000",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.session.timeout.ms": "3000",
    "group.share.min.session.timeout.ms": "1000",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "3",
}


@pytest.fixture(scope="module")
def quick(
    new_broker: NewBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    """A broker whose members heartbeat often, and lose records after a second."""
    process = new_broker(tmp_path_factory.mktemp("quick"), QUICK)
    process.start()
    try:
        yield process
    finally:
        process.kill()


def test_java_share_consumers(quick: BrokerProcess) -> None:
    said = run_program(jars.KAFKA_4, "ShareConsumers", [quick.bootstrap])

    assert said.pop("stderr") is not None
    assert said == {
        "shared": "5000 1 true",
        "explicit": "0x1 1x1 2x1 3x1 4x1 5x1 6x1 7x1 8x1, 1x2 4x2 7x2, ",
        "expired": "0x1 1x1 2x1, 0x2 1x2 2x2",
        "renewed": "0x1 1x1 2x1, , true",
        "closed": "0x1 1x1 2x1, 0x2 1x2 2x2",
        "limit": "0x1 0x2 0x3, ",
        "committed": "0x1 2x1, ",
        "few": "[4, 4, 2]",
    }
