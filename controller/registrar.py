"""Keeps a broker registered: at the start, and again whenever its session was replaced.

A broker that was killed and started again finds its own node still there, owned by the session that
died with it. Apache Kafka's gives up then; this one waits for ZooKeeper to end that session.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from controller.registration import register_broker
from controller.store import MetadataStore, NodeExistsError, Znode
from controller.znodes import MalformedZnodeError, broker_path, decode_broker

if TYPE_CHECKING:
    from collections.abc import Callable

    from controller.znodes import BrokerRegistration

logger = logging.getLogger(__name__)


class BrokerIdTakenError(Exception):
    """Another broker lives under this id."""


class Registrar:
    """The registration of one broker, and the epoch it got by it."""

    def __init__(
        self,
        store: MetadataStore,
        broker_id: int,
        describe: Callable[[], BrokerRegistration],
        patience_ms: int,
    ) -> None:
        """``describe`` says what stands in the node; ``patience_ms`` is for the node of old."""
        self._store = store
        self._broker_id = broker_id
        self._describe = describe
        self._patience_ms = patience_ms
        self._waited_for = 0
        self.epoch = -1
        """The broker's epoch: the transaction that made its node, -1 before that."""

    async def ensure(self) -> int:
        """Be registered in the session of now; returns the broker epoch.

        Raises BrokerIdTakenError if the id is somebody else's for longer than patience has it.
        """
        path = broker_path(self._broker_id)
        try:
            async with asyncio.timeout(self._patience_ms / 1000):
                while not await self._try_once(path):
                    await self._wait_for_change(path)
        except TimeoutError:
            raise BrokerIdTakenError(await self._describe_holder(path)) from None
        return self.epoch

    async def _try_once(self, path: str) -> bool:
        node = await self._store.exists(path)
        if node is None:
            try:
                self.epoch = await register_broker(self._store, self._broker_id, self._describe())
            except NodeExistsError:
                return False
            return True
        if node.ephemeral_owner == self._store.session_id:
            self.epoch = node.czxid
            return True
        return False

    async def _wait_for_change(self, path: str) -> None:
        changed = asyncio.Event()
        node = await self._store.exists(path, lambda _: changed.set())
        if node is None:
            return
        if node.ephemeral_owner != self._waited_for:
            self._waited_for = node.ephemeral_owner
            logger.warning(
                "broker id %d is still registered (%s); waiting for that session to end",
                self._broker_id,
                _shown(path, node),
            )
        await changed.wait()

    async def _describe_holder(self, path: str) -> str:
        node = await self._store.exists(path)
        shown = "" if node is None else f" as {_shown(path, node)}"
        return f"broker id {self._broker_id} is registered by another broker{shown}"


def _shown(path: str, node: Znode) -> str:
    try:
        return ", ".join(endpoint.url() for endpoint in decode_broker(path, node.data).endpoints)
    except MalformedZnodeError as error:
        return str(error)
