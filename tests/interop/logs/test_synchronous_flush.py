"""Records acknowledged to stock clients in a topic with `flush.messages=1` are on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from tests.interop.clients import aio, confluent, kafka_python
from tests.interop.clients.record import Record, Sending
from tests.interop.conftest import against_apache, create_topic, eventually
from tests.support.brokers.ours import ours

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

    from tests.support.brokers.broker_process import BrokerProcess

pytestmark = pytest.mark.skipif(against_apache(), reason="reads the files of a broker of its own")

CLIENTS = (confluent, -1), (kafka_python, 1), (aio, -1)
COUNT = 20
FIRST_MS = 1_795_229_963_000
CHECKPOINT = "recovery-point-offset-checkpoint"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    properties = {"log.flush.offset.checkpoint.interval.ms": "50"}
    process = ours(tmp_path / "broker", properties, data_directory=tmp_path / "data")
    process.start()
    yield process
    process.kill()


def flushed_to(directory: Path, topic: str) -> int:
    """Up to which offset the broker says that the log is on its disk."""
    path = directory / CHECKPOINT
    if not path.exists():  # it is written now and then
        return 0
    lines = path.read_text().splitlines()[2:]
    found = {name: int(offset) for name, _, offset in (line.split(" ") for line in lines)}
    return found.get(topic, 0)


@pytest.mark.parametrize(
    ("client", "acks"), CLIENTS, ids=["confluent-kafka", "kafka-python", "aiokafka"]
)
def test_acknowledged_records_are_flushed(
    broker: BrokerProcess, tmp_path: Path, client: ModuleType, acks: int
) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for topic, config in (("synchronous", {"flush.messages": "1"}), ("ordinary", {})):
        create_topic(admin, topic, 1, config)
    sent = [Record(0, b"key", b"record %d" % n, FIRST_MS + n) for n in range(COUNT)]

    for topic in ("ordinary", "synchronous"):
        client.produce(broker.bootstrap, topic, sent, Sending(acks=acks))

    eventually(lambda: flushed_to(tmp_path / "data", "synchronous") == COUNT)
    assert flushed_to(tmp_path / "data", "ordinary") == 0
    broker.kill()
    broker.start()
    read = client.read(broker.bootstrap, "synchronous", COUNT)
    assert [record.value for record in read] == [record.value for record in sent]
