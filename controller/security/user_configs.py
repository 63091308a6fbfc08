"""Configurations of users, client ids and addresses: SCRAM credentials and quotas.

One node holds both kinds for a user. An entity without configuration has no node, and parents that
were there for it alone are deleted with it; so users that come and go leave nothing behind. (Apache
Kafka does the same, in several steps; here it is one transaction, repeated after a concurrent
write.)
"""

from __future__ import annotations

import asyncio
import logging
from itertools import chain
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from controller.brokers.dynamic_configs import WRITE_ATTEMPTS, read_config
from controller.metadata_store.store import (
    BadVersionError,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    SetData,
    StoreError,
)
from controller.security.config_entities import (
    CLIENTS,
    ENTITY_TYPES,
    USERS,
    ConfigEntity,
    parse_entity,
    sanitized,
)
from controller.znodes import (
    CONFIG,
    CONFIG_CHANGE_PREFIX,
    MalformedZnodeError,
    config_path,
    decode_config,
    encode_config,
    encode_config_change,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from controller.brokers.dynamic_configs import Alteration, Configured, DynamicConfigs
    from controller.metadata_store.store import MetadataStore, Operation

READ_AT_ONCE = 500
"""Nodes whose children are asked for in one flight. Fixed: it bounds what a flight holds."""

_CONCURRENT = (BadVersionError, NodeExistsError, NoNodeError, NotEmptyError)

logger = logging.getLogger(__name__)


class UserConfigs:
    """Reads and changes them. Listeners register with `DynamicConfigs.on_change`."""

    def __init__(self, store: MetadataStore, dynamic: DynamicConfigs) -> None:
        """`dynamic` passes configurations read and changed to all listeners."""
        self._store = store
        self._dynamic = dynamic
        self._writing: WeakValueDictionary[ConfigEntity, asyncio.Lock] = WeakValueDictionary()
        """By entity, as long as it is being written."""

    async def load(self) -> None:
        """Pass the current configurations to all listeners. Call it once changes are watched."""
        await self._dynamic.announce(lambda: _read_types(self._store, ENTITY_TYPES))

    async def read(self, entity: ConfigEntity) -> dict[str, str]:
        """Read an entity's configuration; empty if it is unknown. Raises MalformedZnodeError."""
        return await read_config(self._store, entity.entity_type, entity.entity)

    async def read_all(self, *entity_types: str) -> list[tuple[ConfigEntity, Mapping[str, str]]]:
        """Read the configurations of these entity types; users include their client ids."""
        parsed = [
            (parse_entity(entity_type, entity), values)
            for entity_type, entity, values in await _read_types(self._store, entity_types)
        ]
        return [(entity, values) for entity, values in parsed if entity is not None]

    async def alter(self, entity: ConfigEntity, change: Alteration) -> None:
        """Apply `change` to an entity's configuration, and notify all brokers.

        This broker's listeners have been called when this returns. `change` is called again after a
        concurrent write. Raises StoreError, and the errors of `change`.
        """
        lock = self._writing.setdefault(entity, asyncio.Lock())
        async with lock:
            await alter_entity(self._store, entity, change)
        try:
            await self._dynamic.refresh()
        except StoreError as error:
            logger.warning("change of %s is stored, not applied: %s", entity.entity, error)


async def alter_entity(store: MetadataStore, entity: ConfigEntity, change: Alteration) -> None:
    """Change an entity's configuration with a notification. Raises StoreError."""
    path = config_path(entity.entity_type, entity.entity)
    note = encode_config_change(entity.entity_type, entity.entity)
    for _ in range(WRITE_ATTEMPTS):
        try:
            write = await _write(store, entity, path, change)
        except NoNodeError:  # a parent was deleted between two reads
            continue
        news = Create(CONFIG_CHANGE_PREFIX, note, sequence=True)
        try:
            await store.multi([*write, news])
        except _CONCURRENT as error:
            if error.operation == len(write):
                raise
        else:
            return
    raise StoreError(path, "is being changed by others")


async def _write(
    store: MetadataStore, entity: ConfigEntity, path: str, change: Alteration
) -> list[Operation]:
    """Return the writes that leave the changed configuration in the tree."""
    node = await store.exists(path)
    values = change({} if node is None else decode_config(path, node.data))
    if values or (node is not None and await store.children(path)):
        data = encode_config(values)
        if node is not None:
            return [SetData(path, data, node.version)]
        return [*await _missing_parents(store, entity), Create(path, data)]
    if node is None:
        return []
    return [Delete(path, node.version), *await _deletable_parents(store, entity)]


def _parents(entity: ConfigEntity) -> tuple[str, ...]:
    """Nodes above a user's client id that are there for it alone, the lower first."""
    if entity.user is None or entity.client_id is None:
        return ()
    user = config_path(USERS, sanitized(entity.user))
    return (f"{user}/{CLIENTS}", user)


async def _missing_parents(store: MetadataStore, entity: ConfigEntity) -> list[Operation]:
    paths = tuple(reversed(_parents(entity)))
    nodes = await store.get_many(paths)
    return [Create(path) for path, node in zip(paths, nodes, strict=True) if node is None]


async def _deletable_parents(store: MetadataStore, entity: ConfigEntity) -> list[Operation]:
    """Return deletions of parents left empty: one with other children or data stays."""
    deletions: list[Operation] = []
    for path in _parents(entity):
        node = await store.get(path)
        if len(await store.children(path)) > 1 or decode_config(path, node.data):
            break
        deletions.append(Delete(path, node.version))
    return deletions


async def _read_types(store: MetadataStore, entity_types: Iterable[str]) -> list[Configured]:
    names = [(kind, name) for kind in entity_types for name in await _names(store, kind)]
    nodes = await store.get_many([config_path(kind, name) for kind, name in names])
    found: list[Configured] = []
    for (kind, name), node in zip(names, nodes, strict=True):
        try:
            values = decode_config(config_path(kind, name), None if node is None else node.data)
        except MalformedZnodeError as error:
            logger.error("%s %s runs without its configuration: %s", kind, name, error)  # noqa: TRY400
        else:
            if values:
                found.append((kind, name, values))
    return found


async def _names(store: MetadataStore, entity_type: str) -> list[str]:
    """The entities of a type; users first, then users' client ids."""
    names = await store.children(f"{CONFIG}/{entity_type}")
    if entity_type != USERS:
        return names
    below: list[str] = []
    for start in range(0, len(names), READ_AT_ONCE):
        some = names[start : start + READ_AT_ONCE]
        below += chain.from_iterable(
            await asyncio.gather(*[_clients_of(store, name) for name in some])
        )
    return names + below


async def _clients_of(store: MetadataStore, user: str) -> list[str]:
    try:
        clients = await store.children(f"{config_path(USERS, user)}/{CLIENTS}")
    except NoNodeError:
        return []
    return [f"{user}/{CLIENTS}/{client}" for client in clients]
