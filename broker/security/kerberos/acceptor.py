"""The way to the Kerberos library: the credential of this broker, and contexts with clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gssapi
from gssapi.raw.misc import GSSError

from broker.security.sasl.mechanism import InvalidCredentialsError
from config.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping


class Acceptor:
    """This broker, as clients' tickets name it."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """`options` of `Krb5LoginModule`: `principal`, and `keyTab` unless it is the system's.

        Reads the key table. Raises ConfigError.
        """
        principal = options.get("principal")
        if not principal:
            raise ConfigError("Krb5LoginModule has no principal: whose the key table is")
        name = gssapi.Name(principal, gssapi.NameType.kerberos_principal)
        store: dict[str | bytes, str | bytes] | None = None
        if "keyTab" in options:
            store = {"keytab": options["keyTab"]}
        try:
            self._credential = gssapi.Credentials(
                name=name, mechs=[gssapi.MechType.kerberos], usage="accept", store=store
            )
        except GSSError as error:
            raise ConfigError(f"no Kerberos key of {principal}: {error}") from None
        self.realm = principal.rpartition("@")[2] if "@" in principal else ""

    def context(self) -> AcceptedContext:
        """Begin with a client."""
        return AcceptedContext(self._credential)


class AcceptedContext:
    """`broker.security.kerberos.mechanism.SecurityContext` of MIT Kerberos."""

    def __init__(self, credential: gssapi.Credentials) -> None:
        self._context = gssapi.SecurityContext(creds=credential, usage="accept")

    def step(self, token: bytes) -> bytes:
        """Check a ticket."""
        try:
            return self._context.step(token) or b""
        except GSSError as error:
            raise InvalidCredentialsError(_reason(error)) from None

    @property
    def is_established(self) -> bool:
        """True if the client has presented everything required."""
        return bool(self._context.complete)

    @property
    def client(self) -> str:
        """Its principal, with the realm."""
        return str(self._context.initiator_name)

    def wrap(self, message: bytes) -> bytes:
        """Sign a message, without encryption."""
        try:
            return bytes(self._context.wrap(message, encrypt=False).message)
        except GSSError as error:
            raise InvalidCredentialsError(_reason(error)) from None

    def unwrap(self, token: bytes) -> bytes:
        """Check a message."""
        try:
            return bytes(self._context.unwrap(token).message)
        except GSSError as error:
            raise InvalidCredentialsError(_reason(error)) from None


def _reason(error: GSSError) -> str:
    return " ".join(str(error).split())
