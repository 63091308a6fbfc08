"""Entities of a configuration: a user, a client id, a user's client id, or an address.

Names are percent-encoded in paths, as by Apache Kafka's `Sanitizer`; `<default>`, which no encoded
name can be, stands for all entities without a configuration of their own.

    /config/users/alice                     ConfigEntity(user="alice")
    /config/users/alice/clients/loader      ConfigEntity(user="alice", client_id="loader")
    /config/users/alice/clients/<default>   ConfigEntity(user="alice", client_id=DEFAULT)
    /config/clients/loader                  ConfigEntity(client_id="loader")
    /config/ips/10.1.2.3                    ConfigEntity(ip="10.1.2.3")
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple
from urllib.parse import quote, unquote_plus

from controller.znodes import DEFAULT_ENTITY

USERS = "users"
CLIENTS = "clients"
IPS = "ips"
ENTITY_TYPES = (USERS, CLIENTS, IPS)
_PARTS_OF_A_USERS_CLIENT = 3


class Default(Enum):
    """The type of `DEFAULT`."""

    DEFAULT = DEFAULT_ENTITY


DEFAULT: Final = Default.DEFAULT
"""All users, client ids or addresses that have no configuration of their own."""

Name = str | Default


class ConfigEntity(NamedTuple):
    """A user, a client id, both, or an address."""

    user: Name | None = None
    client_id: Name | None = None
    ip: Name | None = None

    @property
    def entity_type(self) -> str:
        """The node below `/config` that it is found in."""
        if self.ip is not None:
            return IPS
        return CLIENTS if self.user is None else USERS

    @property
    def entity(self) -> str:
        """The rest of its path."""
        if self.ip is not None:
            return self.ip if isinstance(self.ip, str) else DEFAULT_ENTITY
        names = [sanitized(name) for name in (self.user, self.client_id) if name is not None]
        assert names, "an entity has at least one name"
        return f"/{CLIENTS}/".join(names)


def parse_entity(entity_type: str, entity: str) -> ConfigEntity | None:
    """The entity of a path below `/config`; None if it is of no such kind."""
    names = entity.split("/")
    if entity_type == USERS and len(names) == _PARTS_OF_A_USERS_CLIENT and names[1] == CLIENTS:
        return ConfigEntity(user=_name(names[0]), client_id=_name(names[2]))
    if len(names) != 1:
        return None
    if entity_type == USERS:
        return ConfigEntity(user=_name(entity))
    if entity_type == CLIENTS:
        return ConfigEntity(client_id=_name(entity))
    if entity_type == IPS:
        return ConfigEntity(ip=DEFAULT if entity == DEFAULT_ENTITY else entity)
    return None


def sanitized(name: Name) -> str:
    """A name encoded for a path: letters, digits, `.`, `-`, `_`, and `%XX` for the rest."""
    if isinstance(name, Default):
        return DEFAULT_ENTITY
    return quote(name, safe="").replace("~", "%7E")  # the two encoders differ in this character


def _name(text: str) -> Name:
    return DEFAULT if text == DEFAULT_ENTITY else unquote_plus(text)
