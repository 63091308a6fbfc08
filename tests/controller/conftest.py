"""ZooKeeper for the tests of what is kept in it: one server for all, started when first needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.zookeeper import ZooKeeperServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """Return a running server; tests that stop it use one of their own."""
    server = ZooKeeperServer(tmp_path_factory.mktemp("zookeeper"))
    server.start()
    yield server
    server.kill()
