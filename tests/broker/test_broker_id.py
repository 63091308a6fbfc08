"""The id of a broker: the configured one, else the one on disk, else a generated one."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from broker.runtime.platform import LocalPlatform
from broker.startup.disk import open_directories, open_store
from broker.startup.start_error import StartError
from config.broker import BrokerConfig
from storage.disk import Disk

if TYPE_CHECKING:
    from pathlib import Path


def started_id(directory: Path, broker_id: int = -1) -> int:
    """Open what lies in a directory as a starting broker does; returns the broker's id."""
    config = BrokerConfig(broker_id=broker_id, log_dirs=(str(directory),))

    async def start(executor: ThreadPoolExecutor) -> int:
        platform = LocalPlatform()
        logs = await open_directories(config, executor, Disk(platform.filesystem))
        try:
            opened = await open_store(config, logs, executor, platform)
            await opened.store.close()
            return opened.broker_id
        finally:
            await asyncio.to_thread(logs.close)

    with ThreadPoolExecutor(1) as executor:
        return asyncio.run(start(executor))


def test_a_generated_broker_id_is_above_the_reserved_range_and_kept(
    tmp_path: Path,
) -> None:
    assert started_id(tmp_path) == 1001
    assert "broker.id=1001\n" in (tmp_path / "meta.properties").read_text()
    assert started_id(tmp_path) == 1001


def test_a_broker_without_an_id_takes_the_one_on_disk(tmp_path: Path) -> None:
    assert started_id(tmp_path, 7) == 7
    assert started_id(tmp_path) == 7


def test_an_id_that_is_not_the_one_on_disk_is_refused(tmp_path: Path) -> None:
    started_id(tmp_path)
    with pytest.raises(StartError, match=r"set broker\.id=1001"):
        started_id(tmp_path, 0)
