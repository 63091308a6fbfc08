"""AlterConfigs and IncrementalAlterConfigs on the settings of one broker, or of all brokers.

First passwords are encrypted and the resulting listener settings are tried out: both take time.
Then everything is checked again, against the state of the store at that moment, and written.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from config.dynamic import check_dynamic_settings
from config.errors import ConfigError
from controller.brokers.dynamic_configs import read_config
from controller.metadata_store.store import StoreError
from controller.znodes import BROKER_ENTITY, DEFAULT_ENTITY
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker.requests.services import BrokerServices

    Change = Callable[[Mapping[str, str], Mapping[str, str]], Mapping[str, str]]

logger = logging.getLogger(__name__)


class BrokerAlteration:
    """The change of one broker's settings, or of the defaults of all."""

    def __init__(
        self, broker: BrokerServices, name: str, texts: Mapping[str, str], change: Change
    ) -> None:
        """Set `texts` by `change(texts as they are stored, present settings)`.

        `name` is empty for all brokers. Raises ApiError INVALID_REQUEST for another broker.
        """
        own_id = broker.config.broker_id
        if name not in ("", str(own_id)):
            text = f"Broker {own_id} changes itself and the cluster's default, not broker '{name}'."
            raise ApiError(ErrorCode.INVALID_REQUEST, text)
        self._broker = broker
        self._entity = name or DEFAULT_ENTITY
        self._texts = texts
        self._change = change
        self._stored: Mapping[str, str] = texts
        self._resolved: Mapping[str, str] = texts

    async def apply(self, *, validate_only: bool) -> None:
        """Check the change and store it. Raises ApiError, ConfigError and StoreError."""
        broker, configs = self._broker, self._broker.broker_configs
        self._resolved = await configs.resolved(self._texts)
        present = await read_config(broker.store, BROKER_ENTITY, self._entity)
        self._alter(present)  # what cannot be is said before a missing secret is
        self._stored = await configs.storable(self._texts)
        try:
            await configs.check(self._entity, self._alter(present))
        except ConfigError as error:
            raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from error
        if validate_only:
            return
        dynamic = broker.topic_configs.dynamic
        await dynamic.alter(BROKER_ENTITY, self._entity, self._alter)
        try:
            await dynamic.refresh()
        except StoreError as error:
            logger.warning("change of %s is stored, not applied: %s", self._entity, error)

    def _alter(self, before: Mapping[str, str]) -> Mapping[str, str]:
        altered = self._change(self._stored, before)
        news = {
            name: self._resolved[name] if text == self._stored.get(name) else text
            for name, text in altered.items()
            if before.get(name) != text
        }
        try:
            check_dynamic_settings(
                self._broker.config,
                news,
                is_cluster_default=self._entity == DEFAULT_ENTITY,
            )
        except ConfigError as error:
            raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from error
        return altered
