"""Dynamic configurations: written with a notification, read back by every broker.

A change is a conditional write: of two concurrent ones, the second is applied to the result of the
first, whether they come from this broker, another, or a tool that writes to the store. (Apache
Kafka's brokers write unconditionally, so they may still undo a concurrent change.)

The writer sets `/config/<type>/<entity>` and then adds a node below `/config/changes`. Every broker
watches those children, reads the named entity again, and calls its listeners. Creating a topic
writes its configuration without a notification: a broker reads it when it first learns of the topic
(`load_topics`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType
from weakref import WeakValueDictionary

from controller.metadata_store.store import (
    BadVersionError,
    Change,
    Create,
    Delete,
    MetadataStore,
    NodeExistsError,
    NoNodeError,
    SetData,
    StoreError,
)
from controller.znodes import (
    CONFIG,
    CONFIG_CHANGE_PREFIX,
    CONFIG_CHANGES,
    TOPIC_ENTITY,
    MalformedZnodeError,
    config_path,
    decode_config,
    decode_config_change,
    encode_config,
    encode_config_change,
)

WRITE_ATTEMPTS = 5
"""Number of attempts of a conditional write against other brokers' writes. Fixed: each failure is
another's success, and the client asks again."""

KEPT_NOTIFICATIONS = 1000
"""Older notifications are deleted by the brokers that have read them.

Fixed: these are far more than come between two reads of a live broker.
"""

NOTHING: Mapping[str, str] = MappingProxyType({})
"""No overrides, as most topics have: a thousand of them share this."""

logger = logging.getLogger(__name__)

Alteration = Callable[[Mapping[str, str]], Mapping[str, str]]
"""Makes the new configuration from the present one."""

Configured = tuple[str, str, Mapping[str, str]]
"""Entity type, entity and its whole configuration."""

Listener = Callable[[str, str, Mapping[str, str]], Awaitable[None]]
"""Called with entity type, entity and its whole new configuration; no change before it is done."""


async def alter_config(
    store: MetadataStore, entity_type: str, entity: str, change: Alteration
) -> None:
    """Change an entity's configuration and notify all brokers.

    `change` makes the whole new configuration from the present one, or raises; it is called again
    after a concurrent write. Raises StoreError if there was one at each attempt.
    """
    path = config_path(entity_type, entity)
    news = Create(CONFIG_CHANGE_PREFIX, encode_config_change(entity_type, entity), sequence=True)
    for _ in range(WRITE_ATTEMPTS):
        node = await store.exists(path)
        data = encode_config(change({} if node is None else decode_config(path, node.data)))
        write = Create(path, data) if node is None else SetData(path, data, node.version)
        try:
            await store.multi([write, news])
        except (BadVersionError, NodeExistsError, NoNodeError) as error:
            if error.operation:
                raise
        else:
            return
    raise StoreError(path, "is being changed by others")


async def read_config(store: MetadataStore, entity_type: str, entity: str) -> dict[str, str]:
    """Read an entity's configuration; empty if it has none."""
    path = config_path(entity_type, entity)
    node = await store.exists(path)
    return {} if node is None else decode_config(path, node.data)


class DynamicConfigs:
    """This broker's copy of the topics' configurations, kept up to date by notifications."""

    def __init__(self, store: MetadataStore, spawn: Callable[[], None] | None = None) -> None:
        """Read from `store`. `spawn` is called on the loop when `refresh` should run."""
        self._store = store
        self._spawn = spawn
        self._topics: dict[str, Mapping[str, str]] = {}
        self._listeners: list[Listener] = []
        self._newest_seen: str | None = None
        self._is_watching = False
        self._reading = asyncio.Lock()
        self._writing: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        """By entity, as long as it is being written."""

    def on_change(self, listener: Listener) -> None:
        """Call `listener` after each change that a notification announced."""
        self._listeners.append(listener)

    def topic_overrides(self, topic: str) -> Mapping[str, str]:
        """The keys set for a topic; empty for one that has none or is not known yet."""
        return self._topics.get(topic, NOTHING)

    def topics_that_set(self, key: str) -> list[str]:
        """Topics with an override of this key, whatever its value."""
        return [topic for topic, overrides in self._topics.items() if key in overrides]

    def knows_topic(self, topic: str) -> bool:
        """Return whether the topic's configuration was read."""
        return topic in self._topics

    async def alter(self, entity_type: str, entity: str, change: Alteration) -> None:
        """As `alter_config`, serialised: only other brokers and tools write concurrently."""
        lock = self._writing.setdefault((entity_type, entity), asyncio.Lock())
        async with lock:
            await alter_config(self._store, entity_type, entity, change)

    async def start(self) -> None:
        """Start watching for changes, and read all topics' configurations.

        The watch comes first, so that changes during the read are seen.
        """
        await self.refresh()
        await self.load_topics(await self._store.children(f"{CONFIG}/{TOPIC_ENTITY}"))

    async def load_topics(self, topics: Iterable[str]) -> None:
        """Read topics' configurations, before their logs are made."""
        names = list(topics)
        paths = [config_path(TOPIC_ENTITY, name) for name in names]
        for name, path, node in zip(names, paths, await self._store.get_many(paths), strict=True):
            self._topics[name] = NOTHING
            if node is not None:
                self._keep(name, path, node.data)

    def forget_topics(self, topics: Iterable[str]) -> None:
        """Drop topics that are deleted."""
        for topic in topics:
            self._topics.pop(topic, None)

    async def refresh(self) -> None:
        """Process the notifications that are new, in order; watch for the next.

        Writers call this as well, so there may be many calls at a time: each notification is
        processed by one of them, and one watch serves all.
        """
        async with self._reading:
            await self._refresh()

    async def announce(self, read: Callable[[], Awaitable[Iterable[Configured]]]) -> None:
        """Pass the results of `read` to the listeners, as changes; no change interleaves."""
        async with self._reading:
            for entity_type, entity, values in await read():
                await self._tell(entity_type, entity, values)

    async def _refresh(self) -> None:
        names = await self._names()
        seen = self._newest_seen
        new = [] if seen is None else [name for name in names if name > seen]
        nodes = await self._store.get_many([f"{CONFIG_CHANGES}/{name}" for name in new])
        for name, node in zip(new, nodes, strict=True):
            if node is not None:
                await self._process(f"{CONFIG_CHANGES}/{name}", node.data)
        self._newest_seen = max(self._newest_seen or "", names[-1] if names else "")
        await self._purge(names[:-KEPT_NOTIFICATIONS])

    async def _names(self) -> list[str]:
        if self._is_watching:
            return await self._store.children(CONFIG_CHANGES)
        self._is_watching = True  # before the answer, which a change may overtake
        try:
            return await self._store.children(CONFIG_CHANGES, self._notice)
        except BaseException:
            self._is_watching = False
            raise

    def _notice(self, _: Change) -> None:
        self._is_watching = False
        if self._spawn is not None:
            self._spawn()

    async def _process(self, path: str, data: bytes | None) -> None:
        try:
            entity_type, _, entity = decode_config_change(path, data).partition("/")
            values = await read_config(self._store, entity_type, entity)
        except MalformedZnodeError as error:
            logger.error("configuration change ignored: %s", error)  # noqa: TRY400
            return
        if entity_type == TOPIC_ENTITY:
            self._topics[entity] = values or NOTHING
        await self._tell(entity_type, entity, values)

    async def _tell(self, entity_type: str, entity: str, values: Mapping[str, str]) -> None:
        for listener in self._listeners:
            try:
                await listener(entity_type, entity, values)
            except Exception:  # else each later change would process it again first
                logger.exception("a configuration change of %s %s failed", entity_type, entity)

    def _keep(self, topic: str, path: str, data: bytes | None) -> None:
        try:
            values = decode_config(path, data)
        except MalformedZnodeError as error:
            logger.error("topic %s runs with default configuration: %s", topic, error)  # noqa: TRY400
            return
        if values:
            self._topics[topic] = values

    async def _purge(self, names: Iterable[str]) -> None:
        outcomes = await self._store.multi_many(
            [[Delete(f"{CONFIG_CHANGES}/{name}")] for name in names]
        )
        for outcome in outcomes:
            if isinstance(outcome, StoreError):
                logger.debug("a notification was purged by another broker: %s", outcome)
