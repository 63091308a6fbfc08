"""Configurations of single groups on this broker, kept up to date from the store."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, TypeVar, cast
from urllib.parse import unquote

from config.catalogue import BROKER_KEYS, GROUP_KEYS
from config.groups.limits import effective_values
from controller.metadata_store.store import NodeExistsError, NoNodeError
from controller.security.config_entities import sanitized
from controller.znodes import CONFIG, MalformedZnodeError, config_path, decode_config

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from config.broker import BrokerConfig
    from config.key import Value
    from controller.brokers.dynamic_configs import DynamicConfigs
    from controller.metadata_store.store import MetadataStore

V = TypeVar("V", int, str, bool, tuple[str, ...])

logger = logging.getLogger(__name__)

GROUP_ENTITY = "groups"
"""The node below `/config` that they are found in; Apache Kafka with ZooKeeper has none."""
GROUPS = f"{CONFIG}/{GROUP_ENTITY}"
NOTHING: Mapping[str, str] = {}
CHANGING = {
    name: broker_key
    for name, row in GROUP_KEYS.items()
    for broker_key in row.key.broker_keys
    if BROKER_KEYS[broker_key].key.is_changeable
}
"""The broker key behind a group key, where it changes while the broker runs."""


def group_entity(group_id: str) -> str:
    """A group's name in paths: any character may be in an id."""
    dots = {".": "%2E", "..": "%2E%2E"}  # no node can have these names
    return dots.get(group_id) or sanitized(group_id)


class GroupConfigs:
    """Configuration of single groups (GROUP resources)."""

    def __init__(
        self, store: MetadataStore, dynamic: DynamicConfigs, broker: Callable[[], BrokerConfig]
    ) -> None:
        """`dynamic` notifies of changes; `broker` is the broker's present configuration."""
        self._store = store
        self._broker = broker
        self._overrides: dict[str, Mapping[str, str]] = {}
        self._values: dict[str, Mapping[str, Value]] = {}
        """Effective values of each group."""
        dynamic.on_change(self._changed)

    @property
    def group_ids(self) -> list[str]:
        """The groups that have a configuration of their own."""
        return list(self._overrides)

    def overrides(self, group_id: str) -> Mapping[str, str]:
        """The keys that are set for a group, as they were set."""
        return self._overrides.get(group_id, NOTHING)

    def value(self, group_id: str, name: str, default: V) -> V:
        """The group's own value of a key, within the broker's bounds.

        Without one, the broker's current value, or `default` if that never changes.
        """
        own = self._values.get(group_id, NOTHING)
        if name in own:
            return cast("V", own[name])
        if name in CHANGING:
            return cast("V", self._broker().value_of(CHANGING[name]))
        return default

    async def load(self) -> None:
        """Read them all. Call it once changes are watched for. Raises StoreError."""
        try:
            names = await self._store.children(GROUPS)
        except NoNodeError:  # no group has ever been configured
            return
        nodes = await self._store.get_many([config_path(GROUP_ENTITY, name) for name in names])
        for name, node in zip(names, nodes, strict=True):
            if node is None:
                continue
            try:
                self._keep(unquote(name), decode_config(config_path(GROUP_ENTITY, name), node.data))
            except MalformedZnodeError as error:
                logger.error("group %s has no configuration: %s", name, error)  # noqa: TRY400

    async def prepare(self) -> None:
        """Make the node that they are below. Raises StoreError."""
        with contextlib.suppress(NodeExistsError):
            await self._store.create(GROUPS, None)

    async def _changed(self, entity_type: str, entity: str, changed: Mapping[str, str]) -> None:
        if entity_type != GROUP_ENTITY:
            return
        shown = ", ".join(f"{name}={value}" for name, value in sorted(changed.items()))
        logger.info(
            "group %s: configuration changed: %s", unquote(entity), shown or "defaults only"
        )
        self._keep(unquote(entity), changed)

    def _keep(self, group_id: str, overrides: Mapping[str, str]) -> None:
        if overrides:
            self._overrides[group_id] = overrides
            self._values[group_id] = effective_values(group_id, overrides, self._broker())
        else:
            self._overrides.pop(group_id, None)
            self._values.pop(group_id, None)
