"""Keeps a broker registered: at its start, and after every change of session.

A broker that is restarted after a crash finds its former node, owned by the session before the
crash. Apache Kafka's gives up then; this one waits for ZooKeeper to expire that session.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from controller.brokers.registration import register_broker
from controller.metadata_store.store import (
    BadVersionError,
    Change,
    ChangeKind,
    MetadataStore,
    NodeExistsError,
    NoNodeError,
    Znode,
)
from controller.znodes import MalformedZnodeError, broker_path, decode_broker, encode_broker

if TYPE_CHECKING:
    from collections.abc import Callable

    from controller.znodes import BrokerRegistration

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""Longest wait between two looks at a node that must go. Fixed: no wait counts for more, so that a
process that was stopped for minutes, while ZooKeeper was away too, has not waited for minutes."""


class BrokerIdTakenError(NodeExistsError):
    """Another live broker has this id."""


class Registrar:
    """The registration of one broker, and the epoch it got by it."""

    def __init__(
        self,
        store: MetadataStore,
        broker_id: int,
        describe: Callable[[], BrokerRegistration],
        patience_ms: int,
    ) -> None:
        """`describe` makes the content; `patience_ms` bounds the wait for a former node."""
        self._store = store
        self._broker_id = broker_id
        self._describe = describe
        self._patience_ms = patience_ms
        self._session_id: int | None = None
        """The session of the last registration, or attempt at one."""
        self._waited_for: int | None = None
        self.epoch = -1
        """The broker's epoch: the transaction that made its node, -1 before that."""

    async def ensure(self) -> int:
        """Register in the current session unless done; returns the broker epoch.

        Raises BrokerIdTakenError if one other session holds the id for longer than `patience_ms`,
        and StoreError. Only time in which this process was awake counts, and only a look that began
        after that decides.
        """
        path = broker_path(self._broker_id)
        clock = asyncio.get_running_loop().time
        holder: int | None = None
        left = 0.0
        while True:
            node = await self._store.exists(path)
            if node is None or node.ephemeral_owner in (self._store.session_id, self._session_id):
                if await self._is_registered(node):
                    return self.epoch
                continue  # another session was faster
            if node.ephemeral_owner != holder:
                holder, left = node.ephemeral_owner, self._patience_ms / 1000
            elif left <= 0:
                reason = f"broker id {self._broker_id} is registered by another broker"
                raise BrokerIdTakenError(path, f"{reason} as {_shown(path, node)}")
            began, at_most = clock(), min(left, LOOK_SECONDS)
            change = await self._wait_for_change(path, at_most)
            left -= min(clock() - began, at_most)
            if change is not None and change.kind is ChangeKind.SESSION:
                holder = None  # ZooKeeper was away: its sessions' timeouts start again

    async def renew(self) -> None:
        """Write the current registration into the broker's node, unless that is yet to be made.

        Then `ensure` writes it. Raises StoreError.
        """
        path = broker_path(self._broker_id)
        while True:
            node = await self._store.exists(path)
            if node is None or node.ephemeral_owner != self._session_id:
                return
            with contextlib.suppress(NoNodeError, BadVersionError):  # a concurrent write was faster
                await self._store.set(path, encode_broker(self._describe()), node.version)
                return

    async def _is_registered(self, node: Znode | None) -> bool:
        """Keep the node of this session, or create it; False if that was refused.

        ZooKeeper may leave the node of an expired session behind (ZOOKEEPER-2985). This broker's
        own is replaced, as by Apache Kafka (KAFKA-7165): nothing else would remove it.
        """
        self._session_id = self._store.session_id
        if node is not None and node.ephemeral_owner == self._session_id:
            self.epoch = node.czxid
            return True
        registration = self._describe()
        try:
            self.epoch = await register_broker(self._store, self._broker_id, registration, node)
        except (NodeExistsError, NoNodeError, BadVersionError):
            return False
        return True

    async def _wait_for_change(self, path: str, seconds: float) -> Change | None:
        """Wait until the node changes; None after a timeout."""
        changed: asyncio.Future[Change] = asyncio.get_running_loop().create_future()

        def notice(change: Change) -> None:
            if not changed.done():
                changed.set_result(change)

        node = await self._store.exists(path, notice)
        if node is None:
            return None
        if node.ephemeral_owner != self._waited_for:
            self._waited_for = node.ephemeral_owner
            logger.warning(
                "broker id %d is still registered (%s); waiting for that session to end",
                self._broker_id,
                _shown(path, node),
            )
        try:
            async with asyncio.timeout(seconds):
                return await changed
        except TimeoutError:
            return None


def _shown(path: str, node: Znode) -> str:
    try:
        return ", ".join(endpoint.url() for endpoint in decode_broker(path, node.data).endpoints)
    except MalformedZnodeError as error:
        return str(error)
