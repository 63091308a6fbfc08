"""A client's credentials: protocol, mechanism and user, in the words of each client library."""

from __future__ import annotations

import json
import ssl
import time
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiokafka.abc import AbstractTokenProvider as AioTokenProvider
from kafka.net.sasl.oauth import AbstractTokenProvider as KafkaPythonTokenProvider

from tests.support.security.listeners import SECURITY
from tests.support.security.realm import ALICE, PASSWORDS, quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.security.realm import Realm

HOUR_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Access:
    """A client's access."""

    protocol: str
    mechanism: str = ""
    """Mechanism of SASL; empty without SASL."""
    user: str = ALICE
    password: str | None = None
    """A password instead of the right one."""

    def __str__(self) -> str:
        return f"{self.protocol}-{self.mechanism}" if self.mechanism else self.protocol

    @property
    def secret(self) -> str:
        """The password that is sent."""
        return PASSWORDS[self.user] if self.password is None else self.password

    @property
    def is_encrypted(self) -> bool:
        """Return whether the protocol uses TLS."""
        return self.protocol.endswith("SSL")

    def java(self, realm: Realm) -> dict[str, str]:
        """For kafka-clients and Apache's tools."""
        keys = {"security.protocol": self.protocol}
        if self.is_encrypted:
            keys |= realm.truststore()
        if self.protocol == "SSL":
            keys |= realm.user(self.user).as_keystore()
        if self.mechanism:
            keys |= {"sasl.mechanism": self.mechanism, "sasl.jaas.config": self._login_module()}
        return keys

    def librdkafka(self, realm: Realm) -> dict[str, Any]:
        """For confluent-kafka, and for kcat behind `-X`."""
        keys: dict[str, Any] = {"security.protocol": self.protocol}
        if self.is_encrypted:
            keys["ssl.ca.location"] = str(realm.authority.pem_file(realm.directory))
        if self.protocol == "SSL":
            issued = realm.user(self.user)
            keys["ssl.certificate.location"] = str(issued.chain_file())
            keys["ssl.key.location"] = str(issued.key_file())
        if self.mechanism == "OAUTHBEARER":
            keys |= {
                "sasl.mechanism": self.mechanism,
                "enable.sasl.oauthbearer.unsecure.jwt": "true",
                "sasl.oauthbearer.config": f"principal={self.user}",
            }
        elif self.mechanism:
            keys |= {
                "sasl.mechanism": self.mechanism,
                "sasl.username": self.user,
                "sasl.password": self.secret,
            }
        return keys

    def kafka_python(self, realm: Realm) -> dict[str, Any]:
        """For kafka-python."""
        return {**self._python(_KafkaPythonTokens), "ssl_context": self._context(realm)}

    def aiokafka(self, realm: Realm) -> dict[str, Any]:
        """For aiokafka."""
        return {**self._python(_AioTokens), "ssl_context": self._context(realm)}

    def _python(self, provider: Callable[[str], object]) -> dict[str, Any]:
        keys: dict[str, Any] = {"security_protocol": self.protocol}
        if not self.mechanism:
            return keys
        if self.mechanism == "OAUTHBEARER":
            token = provider(unsecured_token(self.user))
            return {**keys, "sasl_mechanism": self.mechanism, "sasl_oauth_token_provider": token}
        return {
            **keys,
            "sasl_mechanism": self.mechanism,
            "sasl_plain_username": self.user,
            "sasl_plain_password": self.secret,
        }

    def _context(self, realm: Realm) -> ssl.SSLContext | None:
        if not self.is_encrypted:
            return None
        context = ssl.create_default_context(cadata=realm.authority.pem())
        if self.protocol == "SSL":
            issued = realm.user(self.user)
            context.load_cert_chain(issued.chain_file(), issued.key_file())
        return context

    def _login_module(self) -> str:
        if self.mechanism == "OAUTHBEARER":
            claim = f"unsecuredLoginStringClaim_sub={quoted(self.user)}"
            return f"{SECURITY}.oauthbearer.OAuthBearerLoginModule required {claim};"
        kind = "plain.Plain" if self.mechanism == "PLAIN" else "scram.Scram"
        login = f"username={quoted(self.user)} password={quoted(self.secret)}"
        return f"{SECURITY}.{kind}LoginModule required {login};"


class _KafkaPythonTokens(KafkaPythonTokenProvider):  # type: ignore[misc]
    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = token

    def token(self) -> str:
        return self._token


class _AioTokens(AioTokenProvider):  # type: ignore[misc]
    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = token

    async def token(self) -> str:
        return self._token


def unsecured_token(user: str) -> str:
    """Return an unsigned token, good for an hour."""
    now = int(time.time())  # noqa: TID251 - the broker goes by the same clock
    claims = {"sub": user, "iat": now, "exp": now + HOUR_SECONDS}
    return f"{_part({'alg': 'none'})}.{_part(claims)}."


def _part(content: dict[str, object]) -> str:
    return urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


WAYS_IN = (
    Access("SASL_PLAINTEXT", "PLAIN"),
    Access("SASL_PLAINTEXT", "SCRAM-SHA-256"),
    Access("SASL_SSL", "SCRAM-SHA-512"),
    Access("SASL_SSL", "PLAIN"),
    Access("SSL"),
)
"""Every protocol and mechanism supported by all clients."""
