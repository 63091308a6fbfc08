"""Authentication of a broker to ZooKeeper, and access of others to its znodes.

With `zookeeper.set.acl` a znode is writable by its creator only, that is by the identity of the
session by SASL or certificate, and readable by all; znodes with secrets are not even readable by
others. Both lists are Apache Kafka's (`ZkData.defaultAcls`).
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
"""Prefixes of the paths whose data only the creator may read."""


@dataclass(frozen=True, slots=True)
class DigestLogin:
    """A user of ZooKeeper, and the password by which SASL DIGEST-MD5 proves it."""

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ZooKeeperSecurity:
    """Security settings from `zookeeper.ssl.*`, `zookeeper.set.acl` and the JAAS section."""

    tls: ssl.SSLContext | None = None
    """Context of the handshake; None for plain TCP."""

    login: DigestLogin | None = None
    """SASL log-in; None without SASL."""

    sets_acl: bool = False
    """True if znodes belong to their creator."""

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
