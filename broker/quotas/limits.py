"""Limit of a client, and the clients that share it.

The most specific one that is set; all clients with the same one share it, but each user and each
client id has a default by itself:

    1 a user's client id      /config/users/alice/clients/loader
    2 any client id of a user /config/users/alice/clients/<default>
    3 a user                  /config/users/alice
    4 a client id of any user /config/users/<default>/clients/loader
    5 any of any user         /config/users/<default>/clients/<default>
    6 any user                /config/users/<default>
    7 a client id             /config/clients/loader
    8 any client id           /config/clients/<default>

A default for client ids does not apply to a client without one.

Source: kafka.server.ClientQuotaManager.DefaultQuotaCallback.
"""

from __future__ import annotations

from typing import NamedTuple

from controller.security.config_entities import DEFAULT, ConfigEntity


class Share(NamedTuple):
    """Group of clients whose usage is counted together: a user, a client id, or one of a user."""

    user: str
    """Empty: of whatever user."""
    client_id: str
    """Empty: with whatever client id."""


class Limits:
    """The limits of one kind of quota, by whom they were set for."""

    def __init__(self) -> None:
        self._limits: dict[ConfigEntity, float] = {}

    def __bool__(self) -> bool:
        return bool(self._limits)

    def set(self, entity: ConfigEntity, limit: float | None) -> bool:
        """Set a limit, or remove it with None; returns whether that changes anything."""
        if self._limits.get(entity) == limit:
            return False
        if limit is None:
            del self._limits[entity]
        else:
            self._limits[entity] = limit
        return True

    def share_of(self, user: str, client_id: str) -> Share:
        """With whom a client shares the limit that holds for it."""
        limits = self._limits
        pairs = (ConfigEntity(user, client_id), ConfigEntity(user, DEFAULT))
        if any(entity in limits for entity in pairs):
            return Share(user, client_id)
        if ConfigEntity(user) in limits:
            return Share(user, "")
        pairs = (ConfigEntity(DEFAULT, client_id), ConfigEntity(DEFAULT, DEFAULT))
        if any(entity in limits for entity in pairs):
            return Share(user, client_id)
        return Share(user, "") if ConfigEntity(DEFAULT) in limits else Share("", client_id)

    def limit_of(self, share: Share) -> float | None:
        """The limit that those of a share have together; None if there is none."""
        for entity in _applicable(share):
            limit = self._limits.get(entity)
            if limit is not None:
                return limit
        return None


def _applicable(share: Share) -> tuple[ConfigEntity, ...]:
    """Entities whose limits apply to a share, the most specific first."""
    user, client_id = share
    if user and client_id:
        return (
            ConfigEntity(user, client_id),
            ConfigEntity(user, DEFAULT),
            ConfigEntity(DEFAULT, client_id),
            ConfigEntity(DEFAULT, DEFAULT),
        )
    if user:
        return ConfigEntity(user), ConfigEntity(DEFAULT)
    if client_id:
        return ConfigEntity(client_id=client_id), ConfigEntity(client_id=DEFAULT)
    return ()
