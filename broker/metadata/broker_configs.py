"""This broker's configuration while it runs: its file and the dynamic settings over it.

Each change that a notification announces is passed to the listeners, as a whole configuration.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from config.dynamic import with_dynamic_settings
from config.precedence import Layers
from controller.brokers.dynamic_configs import read_config
from controller.znodes import BROKER_ENTITY, DEFAULT_ENTITY, MalformedZnodeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from config.broker import BrokerConfig
    from controller.brokers.dynamic_configs import DynamicConfigs
    from controller.metadata_store.store import MetadataStore

logger = logging.getLogger(__name__)


class BrokerConfigs:
    """The configuration in effect, and where each value was set."""

    def __init__(self, file: BrokerConfig, dynamic: DynamicConfigs) -> None:
        """`file` has the broker's id; `dynamic` notifies of changes."""
        self._file = file
        self._entity = str(file.broker_id)
        self._listeners: list[Callable[[BrokerConfig], Awaitable[None]]] = []
        self._settings: dict[str, Mapping[str, str]] = {}
        self.current = file
        dynamic.on_change(self._changed)

    @property
    def layers(self) -> Layers:
        """The values that were set, by source."""
        return Layers(
            self._file.stated,
            self._settings.get(DEFAULT_ENTITY, {}),
            self._settings.get(self._entity, {}),
        )

    def on_change(self, listener: Callable[[BrokerConfig], Awaitable[None]]) -> None:
        """Call `listener` with each new configuration."""
        self._listeners.append(listener)

    async def load(self, store: MetadataStore) -> None:
        """Read the present dynamic settings. Call it once changes are watched for."""
        for entity in (DEFAULT_ENTITY, self._entity):
            try:
                self._settings[entity] = await read_config(store, BROKER_ENTITY, entity)
            except MalformedZnodeError as error:
                logger.error("dynamic configuration ignored: %s", error)  # noqa: TRY400
        await self._rebuild()

    async def _changed(self, entity_type: str, entity: str, settings: Mapping[str, str]) -> None:
        if entity_type != BROKER_ENTITY or entity not in (DEFAULT_ENTITY, self._entity):
            return
        before = self._settings.get(entity, {})
        self._settings[entity] = settings
        named = sorted(key for key in {*before, *settings} if before.get(key) != settings.get(key))
        logger.info(
            "%s: configuration changed: %s",
            "all brokers" if entity == DEFAULT_ENTITY else f"broker {entity}",
            ", ".join(named) or "nothing",
        )
        await self._rebuild()

    async def _rebuild(self) -> None:
        self.current, problems = with_dynamic_settings(self._file, self.layers)
        for problem in problems:
            logger.warning("dynamic setting ignored: %s", problem)
        for listener in self._listeners:
            await listener(self.current)
