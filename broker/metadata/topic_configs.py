"""Topic configurations on this broker: dynamic overrides over the broker's defaults.

A change that a notification announces is applied to the running logs at once.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from config.alteration import topic_config
from config.errors import ConfigError
from controller.brokers.dynamic_configs import DynamicConfigs
from controller.metadata_store.store import StoreError
from controller.znodes import TOPIC_ENTITY

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
    from typing import Any

    from config.topic import TopicConfig
    from controller.metadata_store.store import MetadataStore

logger = logging.getLogger(__name__)


class TopicConfigs:
    """Typed configurations by topic, kept up to date from the store."""

    def __init__(
        self,
        store: MetadataStore,
        defaults: TopicConfig,
        keep: Callable[[str, Callable[[], Coroutine[Any, Any, None]]], object],
    ) -> None:
        """`keep(name, work)` owns the tasks that read the store after notifications."""
        self._store = store
        self.defaults = defaults
        self._keep = keep
        self._listeners: list[Callable[[str, TopicConfig], Awaitable[None]]] = []
        self._configs: dict[str, TopicConfig] = {}
        self.dynamic = DynamicConfigs(store, self._refresh)
        self.dynamic.on_change(self._changed)

    def on_change(self, listener: Callable[[str, TopicConfig], Awaitable[None]]) -> None:
        """Call `listener(topic, config)` when a topic's configuration changes."""
        self._listeners.append(listener)

    async def start(self) -> None:
        """Read all topics' configurations and watch for changes."""
        await self.dynamic.start()

    async def load(self, topics: Iterable[str]) -> None:
        """Read the configurations of topics that this broker is about to hold.

        Waits while the store is unavailable: a log cannot be made without them.
        """
        names = list(topics)
        while True:
            try:
                await self.dynamic.load_topics(names)
            except StoreError as error:
                logger.warning(
                    "topic configurations deferred, metadata store unavailable: %s", error
                )
                await self._store.wait_until_reachable()
            else:
                break
        for name in names:
            self._configs.pop(name, None)

    def forget(self, topics: Iterable[str]) -> None:
        """Drop topics that are deleted."""
        names = list(topics)
        self.dynamic.forget_topics(names)
        for name in names:
            self._configs.pop(name, None)

    def overrides(self, topic: str) -> Mapping[str, str]:
        """The overrides of the topic."""
        return self.dynamic.topic_overrides(topic)

    def topics_that_set(self, key: str) -> list[str]:
        """Topics with an override of this key, whatever its value."""
        return self.dynamic.topics_that_set(key)

    def topic_config(self, topic: str) -> TopicConfig:
        """The topic's whole configuration."""
        overrides = self.overrides(topic)
        if not overrides:
            return self.defaults
        config = self._configs.get(topic)
        if config is None:
            config = self._configs[topic] = self._build(topic, overrides)
        return config

    def _build(self, topic: str, overrides: Mapping[str, str]) -> TopicConfig:
        """Values that another broker accepted and this one does not know are ignored."""
        try:
            return topic_config(overrides, self.defaults)
        except ConfigError as error:
            logger.warning("topic %s: configuration key ignored: %s", topic, error)
        usable: dict[str, str] = {}
        for name, text in overrides.items():
            try:
                topic_config({**usable, name: text}, self.defaults)
            except ConfigError:
                continue
            usable[name] = text
        return topic_config(usable, self.defaults)

    async def apply_defaults(self, defaults: TopicConfig, topics: Iterable[str]) -> None:
        """Replace the defaults, also for the topics of which this broker has replicas."""
        if defaults == self.defaults:
            return
        self.defaults = defaults
        self._configs.clear()
        for topic in list(topics):
            await self._tell(topic)

    def _refresh(self) -> None:
        self._keep("configuration changes", self._refresh_patiently)

    async def _refresh_patiently(self) -> None:
        """Read the changed configurations, once the store is available."""
        while True:
            try:
                await self.dynamic.refresh()
            except StoreError as error:
                logger.warning(
                    "configuration changes deferred, metadata store unavailable: %s", error
                )
                await self._store.wait_until_reachable()
            else:
                return

    async def _changed(self, entity_type: str, entity: str, changed: Mapping[str, str]) -> None:
        if entity_type != TOPIC_ENTITY:
            return
        self._configs.pop(entity, None)
        overrides = ", ".join(f"{name}={value}" for name, value in sorted(changed.items()))
        logger.info("topic %s: configuration changed: %s", entity, overrides or "defaults only")
        await self._tell(entity)

    async def _tell(self, topic: str) -> None:
        for listener in self._listeners:
            await listener(topic, self.topic_config(topic))
