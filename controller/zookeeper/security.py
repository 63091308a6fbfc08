"""How a broker shows ZooKeeper who it is, and what it lets others do to its znodes.

With `zookeeper.set.acl` a znode is made for whoever created it, that is for the identity the
session has by SASL or by its certificate, and is readable by all; those that hold secrets are not
even that. Both lists are Apache Kafka's (`ZkData.defaultAcls`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

if TYPE_CHECKING:
    import ssl

OPEN_PATH = "/consumers"
"""Consumers of long ago write below it themselves."""

SENSITIVE_PATHS = ("/config/users", "/config/brokers", "/delegation_token/tokens")
"""Beginnings of the paths whose data nobody else may read."""


@dataclass(frozen=True, slots=True)
class DigestLogin:
    """A user of ZooKeeper, and the password by which SASL DIGEST-MD5 proves it."""

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ZooKeeperSecurity:
    """What `zookeeper.ssl.*`, `zookeeper.set.acl` and the JAAS section for ZooKeeper ask for."""

    tls: ssl.SSLContext | None = None
    """Context of the handshake; None for plain TCP."""

    login: DigestLogin | None = None
    """Who logs in by SASL; None for nobody."""

    sets_acl: bool = False
    """Whether znodes belong to their creator."""

    def __str__(self) -> str:
        transport = "plain TCP" if self.tls is None else "TLS"
        login = "no SASL" if self.login is None else f"SASL as {self.login.username!r}"
        return f"{transport}, {login}"


UNPROTECTED = ZooKeeperSecurity()


def acl_of(path: str, *, sets_acl: bool) -> list[Any]:
    """The access list with which a znode is created, as kazoo has it."""
    if not sets_acl or path == OPEN_PATH:
        return list(OPEN_ACL_UNSAFE)
    if path.startswith(SENSITIVE_PATHS):
        return list(CREATOR_ALL_ACL)
    return [*CREATOR_ALL_ACL, *READ_ACL_UNSAFE]
