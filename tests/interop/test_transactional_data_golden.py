"""Golden scripts of transactional data over sockets; with AGAINST=apache against Apache."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.broker.coordinators.data_script import DataScript
from tests.interop.test_transaction_golden import ConnectedProducer

if TYPE_CHECKING:
    from tests.interop.conftest import NewBroker

SCRIPTS = sorted(Path(__file__).parent.parent.glob("broker/coordinators/golden_data/*.txt"))


def test_answers_to_golden_scripts(new_broker: NewBroker, tmp_path: Path) -> None:
    process = new_broker(tmp_path, {})
    process.start()
    peer = ConnectedProducer(process.port)
    try:
        asyncio.run(replay_all(peer))
    finally:
        peer.close()
        process.stop()


async def replay_all(peer: ConnectedProducer) -> None:
    topic_ids = await peer.prepare()
    differences = {}
    for path in SCRIPTS:
        text = path.read_text()
        replayed = await DataScript(peer, topic_ids).replay(text)
        if replayed != text:
            differences[path.name] = replayed
    if differences:
        pytest.fail("\n".join(f"{name}:\n{text}" for name, text in differences.items()))
