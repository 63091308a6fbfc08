"""The identities of a test: an authority, a server, and users with passwords and certificates."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from tests.support.certificates import Authority

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.certificates import Issued

ADMIN = "admin"
"""The brokers' own user, and a super user."""
ALICE = "alice"
BOB = "bob"
PASSWORDS = {ADMIN: "admin-secret", ALICE: "alice-secret", BOB: "bob's, with = and \\ in it"}


class Realm:
    """Makes keys and certificates when they are first asked for, below one directory."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.authority = Authority()
        self._users: dict[str, Issued] = {}

    @cached_property
    def server(self) -> Issued:
        """Return the brokers' certificate; its name is their user's, who is thus known by TLS."""
        return self.authority.issue(ADMIN, self.directory)

    def user(self, name: str) -> Issued:
        """Return a client's certificate."""
        if name == ADMIN:
            return self.server
        if name not in self._users:
            self._users[name] = self.authority.issue(name, self.directory)
        return self._users[name]

    def truststore(self) -> dict[str, str]:
        """The keys with which Java and brokers trust the authority."""
        return self.authority.as_truststore(self.directory)


def quoted(value: str) -> str:
    """A value as a JAAS configuration has it, that is itself in a property file."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
