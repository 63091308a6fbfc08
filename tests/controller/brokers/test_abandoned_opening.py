"""An embedded store whose opening fails, or is broken off, leaves no file open."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from controller.metadata_store.embedded_store import JOURNAL_NAME, EmbeddedStore
from controller.metadata_store.store import StoreUnavailableError
from tests.controller.harness import turns
from tests.controller.volatile_files import VolatileFiles


class SlowFiles(VolatileFiles):
    """Writes wait until they may go on."""

    def __init__(self, content: dict[str, bytes]) -> None:
        super().__init__(content)
        self.may_write = threading.Event()

    def write_at(self, name: str, position: int, data: bytes) -> None:
        self.may_write.wait()
        assert not self.is_closed
        super().write_at(name, position, data)


async def after_a_crash() -> dict[str, bytes]:
    """Files in which a session of an earlier process has a node yet."""
    files = VolatileFiles()
    store = await EmbeddedStore.open(files)
    await store.create("/live", None, ephemeral=True)
    return {JOURNAL_NAME: files.content[JOURNAL_NAME]}


def test_a_disk_that_is_full() -> None:
    async def scenario() -> None:
        files = VolatileFiles(await after_a_crash())
        files.is_full = True
        with pytest.raises(StoreUnavailableError):
            await EmbeddedStore.open(files)
        assert files.is_closed

    asyncio.run(scenario())


def test_an_opening_that_is_cancelled_during_a_write() -> None:
    async def scenario() -> None:
        files = SlowFiles(await after_a_crash())
        with ThreadPoolExecutor(1) as executor:
            opening = asyncio.get_running_loop().create_task(EmbeddedStore.open(files, executor))
            await turns(3)
            opening.cancel()
            await turns(3)
            files.may_write.set()
            with pytest.raises(asyncio.CancelledError):
                await opening
        assert files.is_closed
        assert files.writes == 1

    asyncio.run(scenario())
