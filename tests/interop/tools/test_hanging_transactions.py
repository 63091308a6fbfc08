"""kafka-transactions on a transaction that hangs: it is found, described, and ended (KIP-664)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tests.broker.coordinators.golden.data_script import DataScript, where
from tests.interop.transactions.test_transaction_golden import ConnectedProducer

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interop.conftest import NewBroker
    from tests.support.tools import Tools

HANGING = """
topic hung partitions=1
quiet init v5 id=t
write v12 topic=hung id=t pid=P1 epoch=0 sequence=0
quiet end v5 id=t pid=P1 epoch=0 how=commit
settle v0 id=t
"""
"""A transaction that its coordinator has ended; what is written after that hangs."""
UNVERIFIED = {"transaction.partition.verification.enable": "false"}
LATE = "write v11 topic=hung id=t pid=P1 epoch=1 sequence=0"
"""The older protocol, without the check that keeps late batches out."""


def test_hanging_transaction_is_found_and_aborted(
    new_broker: NewBroker, tools: Tools, tmp_path: Path
) -> None:
    process = new_broker(tmp_path, UNVERIFIED)
    process.start()
    peer = ConnectedProducer(process.port)
    bootstrap = ("--bootstrap-server", process.bootstrap)
    try:
        asyncio.run(hang(peer))
        place = ("--topic", "hung", "--partition", "0")

        described = tools.check("transactions", *bootstrap, "describe-producers", *place)
        (_, epoch, coordinator_epoch, sequence, _, start) = described.lines[1].split()
        assert (epoch, coordinator_epoch, sequence, start) == ("1", "0", "0", "2")

        wanted = ("--broker-id", "0", "--max-transaction-timeout", "0")
        found = tools.check("transactions", *bootstrap, "find-hanging", *wanted)
        assert found.lines[1].split()[:2] == ["hung", "0"]

        tools.check("transactions", *bootstrap, "abort", *place, "--start-offset", "2")
        assert asyncio.run(stable_offset(peer)) == 4
    finally:
        peer.close()
        process.stop()


async def hang(peer: ConnectedProducer) -> None:
    topic_ids = await peer.prepare()
    script = DataScript(peer, topic_ids)
    await script.replay(HANGING)
    assert "base_offset=2" in await script.replay(LATE)
    assert await stable_offset(peer) == 2


async def stable_offset(peer: ConnectedProducer) -> Any:
    words = {"topic": "hung", "timestamp": "-1", "committed": "yes"}
    return (await peer.ask(where(words), 7)).topics[0].partitions[0].offset
