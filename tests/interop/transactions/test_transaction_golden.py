"""Golden scripts of transactions over sockets; with AGAINST=apache they run against Apache."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from protocol.errors import ErrorCode
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.producer_ids import InitProducerIdRequest
from protocol.messages.producers import DescribeTransactionsRequest
from tests.broker.coordinators.golden.transaction_script import TransactionScript
from tests.interop.coordinators.test_group_golden import START_SECONDS, Connected

if TYPE_CHECKING:
    from tests.interop.conftest import NewBroker

SCRIPTS = sorted(Path(__file__).parents[2].glob("broker/coordinators/golden/transactions/*.txt"))
IDS = ("t", "n", "f", "r", "tool-1", "tool-2", "tool-3", "nobody", "unheard")
TRANSACTION_KEY = 1


class ConnectedProducer(Connected):
    """A broker behind sockets, on which transactions can begin."""

    async def prepare(self) -> dict[str, Any]:
        topic_ids = await super().prepare()
        deadline = time.monotonic() + START_SECONDS
        while not await self._coordinates_transactions():
            assert time.monotonic() < deadline, "no coordinator of transactions"
            time.sleep(0.1)  # noqa: ASYNC251 - nothing else runs on this loop
        return topic_ids

    async def _coordinates_transactions(self) -> bool:
        await self.ask(FindCoordinatorRequest(key="t", key_type=TRANSACTION_KEY), 3)
        described = await self.ask(DescribeTransactionsRequest(transactional_ids=list(IDS)), 0)
        identified = await self.ask(
            InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), 5
        )
        codes = {state.error_code for state in described.transaction_states}
        return codes == {ErrorCode.TRANSACTIONAL_ID_NOT_FOUND} and not identified.error_code


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
        replayed = await TransactionScript(peer, topic_ids).replay(text)
        if replayed != text:
            differences[path.name] = replayed
    if differences:
        pytest.fail("\n".join(f"{name}:\n{text}" for name, text in differences.items()))
