"""The process beside the broker, as the broker starts and ends it."""

from __future__ import annotations

import asyncio
import os

import pytest

from broker.maintenance.cleaner_process import CleanerProcess

pytestmark = pytest.mark.process


def test_signals_of_the_terminal_are_for_the_broker_alone() -> None:
    async def scenario() -> None:
        beside = CleanerProcess()
        await beside.submit(b"")
        assert beside._process is not None
        pid = beside._process.pid
        assert os.getpgid(pid) == pid != os.getpgid(0)
        await beside.close()

    asyncio.run(scenario())
