"""This broker's configuration while it runs: its file and the dynamic settings over it.

Each announced change is passed to the listeners, as a whole configuration. A client's settings are
validated by the parts concerned, before they are stored.
"""

from __future__ import annotations

import logging
import os
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from config.dynamic import with_dynamic_settings
from config.listeners.endpoints import KEYS as LISTENER_KEYS
from config.passwords.stored_settings import needs_a_thread, stored_settings_of
from config.precedence import Layers, unprefixed
from controller.brokers.dynamic_configs import read_config
from controller.znodes import BROKER_ENTITY, DEFAULT_ENTITY, MalformedZnodeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from config.broker import BrokerConfig
    from controller.brokers.dynamic_configs import DynamicConfigs
    from controller.metadata_store.store import MetadataStore

logger = logging.getLogger(__name__)

T = TypeVar("T")

_OF_LISTENERS = "listener.name."


class InThread(Protocol):
    """Runs a function on a thread."""

    def __call__(self, work: Callable[[], T]) -> Awaitable[T]:
        """Return its result, or raise its exception."""


class BrokerConfigs:
    """The configuration in effect, and where each value was set."""

    def __init__(
        self, file: BrokerConfig, dynamic: DynamicConfigs, in_thread: InThread | None = None
    ) -> None:
        """`file` has the broker's id; `dynamic` notifies of changes.

        Passwords are decrypted `in_thread`; without one, where they come in. Raises ConfigError.
        """
        self._file = file
        self._dynamic = dynamic
        self._in_thread = in_thread
        self._entity = str(file.broker_id)
        self._listeners: list[Callable[[BrokerConfig], Awaitable[None]]] = []
        self._checks: list[Callable[[BrokerConfig], Awaitable[None]]] = []
        self._settings: dict[str, Mapping[str, str]] = {}
        self._stored = stored_settings_of(file, os.urandom)
        self.current = file
        dynamic.on_change(self._changed)

    @property
    def layers(self) -> Layers:
        """The values that were set, by source."""
        return self._layers(self._settings)

    def on_change(self, listener: Callable[[BrokerConfig], Awaitable[None]]) -> None:
        """Call `listener` with each new configuration."""
        self._listeners.append(listener)

    def on_check(self, check: Callable[[BrokerConfig], Awaitable[None]]) -> None:
        """Call `check` with what would come of a change; it raises ConfigError if that fails."""
        self._checks.append(check)

    async def load(self, store: MetadataStore) -> None:
        """Read the present dynamic settings. Call it once changes are watched for."""
        for entity in (DEFAULT_ENTITY, self._entity):
            try:
                stored: Mapping[str, str] = await read_config(store, BROKER_ENTITY, entity)
            except MalformedZnodeError as error:
                logger.error("dynamic configuration ignored: %s", error)  # noqa: TRY400
                continue
            if entity == self._entity:
                stored = await self._renewed(stored)
            self._settings[entity] = await self._readable(stored)
        await self._rebuild()

    async def storable(self, settings: Mapping[str, str]) -> Mapping[str, str]:
        """Settings as they are stored, passwords encrypted. Raises ConfigError."""
        if not needs_a_thread(settings):
            return settings
        return await self._run(partial(self._stored.storable, settings))

    async def resolved(self, settings: Mapping[str, str]) -> Mapping[str, str]:
        """Resolve the config provider references in a client's settings. Raises ConfigError."""
        if not needs_a_thread(settings):
            return settings
        return await self._run(partial(self._stored.resolved, settings))

    async def check(self, entity: str, stored: Mapping[str, str]) -> None:
        """Raise ConfigError if the broker cannot go on with these as the entity's settings."""
        names = {*stored, *self._settings.get(entity, ())}
        if not any(name.startswith(_OF_LISTENERS) or name in LISTENER_KEYS for name in names):
            return
        settings = {**self._settings, entity: await self._readable(stored)}
        config, problems = with_dynamic_settings(self._file, self._layers(settings))
        for problem in problems:
            if not names.isdisjoint(LISTENER_KEYS) and problem.keys == LISTENER_KEYS:
                raise problem
        for check in self._checks:
            await check(config)

    async def _changed(self, entity_type: str, entity: str, settings: Mapping[str, str]) -> None:
        if entity_type != BROKER_ENTITY or entity not in (DEFAULT_ENTITY, self._entity):
            return
        settings = await self._readable(settings)
        before = self._settings.get(entity, {})
        self._settings[entity] = settings
        named = sorted(key for key in {*before, *settings} if before.get(key) != settings.get(key))
        logger.info(
            "%s: configuration changed: %s",
            "all brokers" if entity == DEFAULT_ENTITY else f"broker {entity}",
            ", ".join(named) or "nothing",
        )
        late = [name for name in named if unprefixed(name).startswith("sasl.")]
        if late:
            logger.info("open listeners take from the next start on: %s", ", ".join(late))
        await self._rebuild()

    async def _readable(self, stored: Mapping[str, str]) -> Mapping[str, str]:
        if not needs_a_thread(stored):
            return stored
        settings, problems = await self._run(partial(self._stored.readable, stored))
        for problem in problems:
            logger.error("dynamic setting ignored: %s", problem)
        return settings

    async def _renewed(self, stored: Mapping[str, str]) -> Mapping[str, str]:
        """Encrypt with the new secret the passwords under `password.encoder.old.secret`."""
        if self._file.password_encoder_old_secret is None or not needs_a_thread(stored):
            return stored
        renewed = await self._run(partial(self._stored.kept_with_old_secret, stored))
        if renewed:
            await self._dynamic.alter(
                BROKER_ENTITY, self._entity, lambda present: {**present, **renewed}
            )
            logger.info("passwords encrypted with the new secret: %s", ", ".join(sorted(renewed)))
        return {**stored, **renewed}

    async def _run(self, work: Callable[[], T]) -> T:
        return work() if self._in_thread is None else await self._in_thread(work)

    async def _rebuild(self) -> None:
        self.current, problems = with_dynamic_settings(self._file, self.layers)
        for problem in problems:
            logger.warning("dynamic setting ignored: %s", problem)
        for listener in self._listeners:
            await listener(self.current)

    def _layers(self, settings: Mapping[str, Mapping[str, str]]) -> Layers:
        cluster, own = settings.get(DEFAULT_ENTITY, {}), settings.get(self._entity, {})
        return Layers(self._file.stated, cluster, own)
