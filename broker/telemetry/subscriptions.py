"""All subscriptions, as this broker knows them: kept up to date from the metadata store."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from broker.metadata.group_configs import group_entity
from broker.telemetry.subscription import ALL, DEFAULT_INTERVAL_MS, Subscription, parse
from controller.metadata_store.store import NodeExistsError, NoNodeError
from controller.znodes import CONFIG, MalformedZnodeError, config_path, decode_config
from protocol.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controller.brokers.dynamic_configs import DynamicConfigs
    from controller.metadata_store.store import MetadataStore

logger = logging.getLogger(__name__)

ENTITY: Final = "client-metrics"
"""The node below `/config` that they are found in; Apache Kafka with ZooKeeper has none."""
MOST: Final = 1000
"""Subscriptions, each of which is matched with each client. Fixed: people write them."""

entity_of = group_entity
"""A subscription's name in paths: any character may be in it, as in a group's."""


class Subscriptions:
    """By name."""

    def __init__(self, store: MetadataStore, dynamic: DynamicConfigs) -> None:
        """`dynamic` notifies of changes."""
        self._store = store
        self._settings: dict[str, Mapping[str, str]] = {}
        self._parsed: dict[str, Subscription] = {}
        self.version = 0
        """Changes with each update."""
        dynamic.on_change(self._changed)

    @property
    def names(self) -> list[str]:
        """Names of all subscriptions."""
        return list(self._settings)

    def settings(self, name: str) -> Mapping[str, str]:
        """Settings of one; empty if there is none."""
        return self._settings.get(name, {})

    def of_client(self, attributes: Mapping[str, str]) -> tuple[list[str], int]:
        """Prefixes requested of a client, sorted, and the shortest interval."""
        metrics: set[str] = set()
        interval_ms = DEFAULT_INTERVAL_MS
        for one in self._parsed.values():
            if one.matches(attributes):
                metrics.update(one.metrics)
                interval_ms = min(interval_ms, one.interval_ms)
        return [ALL] if ALL in metrics else sorted(metrics), interval_ms

    async def load(self) -> None:
        """Read them all. Call it once changes are watched for. Raises StoreError."""
        try:
            names = await self._store.children(f"{CONFIG}/{ENTITY}")
        except NoNodeError:  # there has never been one
            return
        paths = [config_path(ENTITY, name) for name in names]
        for path, name, node in zip(paths, names, await self._store.get_many(paths), strict=True):
            if node is not None:
                try:
                    self._keep(unquote(name), decode_config(path, node.data))
                except MalformedZnodeError as error:
                    logger.error("client metrics %s ignored: %s", name, error)  # noqa: TRY400

    async def prepare(self) -> None:
        """Make the node that they are below. Raises StoreError."""
        with contextlib.suppress(NodeExistsError):
            await self._store.create(f"{CONFIG}/{ENTITY}", None)

    async def _changed(self, entity_type: str, entity: str, changed: Mapping[str, str]) -> None:
        if entity_type == ENTITY:
            name = unquote(entity)
            shown = ", ".join(f"{key}={value}" for key, value in sorted(changed.items()))
            logger.info("client metrics %s: subscription changed: %s", name, shown or "removed")
            self._keep(name, changed)

    def _keep(self, name: str, settings: Mapping[str, str]) -> None:
        self.version += 1
        self._settings.pop(name, None)
        self._parsed.pop(name, None)
        if settings:
            try:
                self._parsed[name] = parse(settings)
            except ApiError as error:
                logger.error("client metrics %s ignored: %s", name, error)  # noqa: TRY400
            self._settings[name] = settings
