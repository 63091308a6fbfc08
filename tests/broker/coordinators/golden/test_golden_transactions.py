"""Our answers to the golden scripts of transactions are Apache's."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.topics.topics import NewTopic
from tests.broker.coordinators.golden.test_golden import InMemory
from tests.broker.coordinators.golden.transaction_script import TransactionScript
from tests.broker.coordinators.transaction_broker import TransactionBroker, run_transaction_broker

SCRIPTS = sorted(Path(__file__).with_name("transactions").glob("*.txt"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_answers_are_those_of_apache(path: Path, tmp_path: Path) -> None:
    text = path.read_text()

    async def scenario(broker: TransactionBroker) -> None:
        await broker.find_coordinator()
        await broker.find_transaction_coordinator()
        await broker.topics.create([NewTopic("flights", 3)], broker.metadata.racks)
        await broker.metadata.wait_until(lambda: broker.metadata.topic("flights") is not None)
        topic_ids = {"flights": broker.metadata.topic_id("flights")}
        assert await TransactionScript(InMemory(broker), topic_ids).replay(text) == text

    run_transaction_broker(tmp_path, scenario)
