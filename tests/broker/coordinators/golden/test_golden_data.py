"""The effects of transactions on data, and our answers about them, are Apache's."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.fetch.fetch_sessions import FetchSessions, SessionLimits
from broker.handlers import all_handlers
from controller.topics.topics import NewTopic
from tests.broker.coordinators.golden.data_script import OFFSETS_PARTITIONS, DataScript
from tests.broker.coordinators.golden.test_golden import InMemory
from tests.broker.coordinators.transaction_broker import TransactionBroker, run_transaction_broker

SCRIPTS = sorted(Path(__file__).with_name("data").glob("*.txt"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_answers_are_those_of_apache(path: Path, tmp_path: Path) -> None:
    assert all_handlers.MODULES
    text = path.read_text()

    async def scenario(broker: TransactionBroker) -> None:
        broker.services.fetch_sessions = FetchSessions(SessionLimits(0, 0, 0), lambda: 1)
        await broker.find_coordinator()
        await broker.find_transaction_coordinator()
        await broker.topics.create([NewTopic("flights", 3)], broker.metadata.racks)
        await broker.metadata.wait_until(lambda: broker.metadata.topic("flights") is not None)
        topic_ids = {"flights": broker.metadata.topic_id("flights")}
        assert await DataScript(InMemory(broker), topic_ids).replay(text) == text

    run_transaction_broker(tmp_path, scenario, offsets_topic_num_partitions=OFFSETS_PARTITIONS)
