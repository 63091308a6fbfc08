"""Registered brokers, read from the store and watched for changes.

A broker comes and goes with its node, and writes another address into it when its listeners change.
A broker that does not support the finalised features does not count, as in Apache Kafka: it read
`/feature` before it registered, and stops as soon as it reads it again. Each node is watched once,
however often all are read: a watch lasts until it is called.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from controller.context import LiveBroker
from controller.features.feature_znode import decode_levels
from controller.znodes import (
    BROKER_IDS,
    FEATURE,
    MalformedZnodeError,
    broker_path,
    decode_broker,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from controller.metadata_store.store import Change, MetadataStore, Watch, Znode

logger = logging.getLogger(__name__)


class RegisteredBrokers:
    """As the controller sees them."""

    def __init__(self, store: MetadataStore, on_change: Callable[[], None]) -> None:
        """`on_change` is called, perhaps without need, once the brokers read are out of date."""
        self._store = store
        self._on_change = on_change
        self._watched: set[str] = set()
        """Paths with a pending watch."""

    async def read(self) -> dict[int, LiveBroker]:
        """All of them, by id. One whose node is unreadable is omitted, and logged."""
        levels = await self._levels()
        names = await self._names()
        paths = [broker_path(int(name)) for name in names]
        nodes = await asyncio.gather(*(self._node(path) for path in paths))
        brokers: dict[int, LiveBroker] = {}
        for name, path, node in zip(names, paths, nodes, strict=True):
            if node is None or node.data is None:
                continue
            try:
                registration = decode_broker(path, node.data)
            except MalformedZnodeError as error:
                logger.error("broker %s is ignored: %s", name, error)  # noqa: TRY400
                continue
            lacking = [name for name in levels if not registration.supports(name, levels[name])]
            if lacking:
                logger.error("broker %s is ignored: no %s", name, ", ".join(lacking))
                continue
            brokers[int(name)] = LiveBroker(registration, node.czxid)
        return brokers

    async def _levels(self) -> dict[str, int]:
        """The finalised features, which each broker has to support."""
        node = await self._node(FEATURE)
        try:
            return {} if node is None else decode_levels(node.data)
        except MalformedZnodeError as error:
            logger.error("finalised features are ignored: %s", error)  # noqa: TRY400
            return {}

    async def _names(self) -> list[str]:
        watch = self._watch(BROKER_IDS)
        try:
            return await self._store.children(BROKER_IDS, watch)
        except BaseException:
            self._watched.discard(BROKER_IDS)
            raise

    async def _node(self, path: str) -> Znode | None:
        watch = self._watch(path)
        try:
            return await self._store.exists(path, watch)
        except BaseException:
            self._watched.discard(path)
            raise

    def _watch(self, path: str) -> Watch | None:
        """Return the callback for the node's next change; None if it is watched already."""
        if path in self._watched:
            return None
        self._watched.add(path)  # before the answer, which a change may overtake

        def notice(_: Change) -> None:
            self._watched.discard(path)
            self._on_change()

        return notice
