"""A broker of any make with a listener for each security protocol.

PLAINTEXT is for the test itself, and by default for brokers among each other; whoever comes there
is `User:ANONYMOUS`. All mechanisms are offered on both listeners with SASL. On SSL a certificate
is required.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)

from tests.support.brokers.broker_process import free_port
from tests.support.security.realm import ADMIN, PASSWORDS, quoted

if TYPE_CHECKING:
    from tests.support.security.realm import Realm

PROTOCOLS = ("PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL", "SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
SCRAM = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}
ITERATIONS = 4096
ANSWER_SECONDS = 120.0
SECURITY = "org.apache.kafka.common.security"


class Ports(NamedTuple):
    """Ports of a broker, by security protocol."""

    plaintext: int
    sasl_plaintext: int
    sasl_ssl: int
    ssl: int

    @classmethod
    def free(cls) -> Ports:
        """Return free ports."""
        return cls(*(free_port() for _ in PROTOCOLS))

    def bootstrap(self, protocol: str) -> str:
        """Return the bootstrap servers for clients of a protocol."""
        return f"localhost:{self[PROTOCOLS.index(protocol)]}"

    def listeners(self) -> str:
        """Return the value of `listeners`."""
        return ",".join(
            f"{protocol}://localhost:{port}" for protocol, port in zip(PROTOCOLS, self, strict=True)
        )


def listener_keys(
    realm: Realm, ports: Ports, mechanisms: tuple[str, ...] = MECHANISMS
) -> dict[str, str]:
    """The keys of these listeners, the same for every make of broker."""
    keys = {
        "listeners": ports.listeners(),
        "sasl.enabled.mechanisms": ",".join(mechanisms),
        "listener.name.ssl.ssl.client.auth": "required",
        "ssl.principal.mapping.rules": r"RULE:^CN=(.*?)$/$1/",
        **realm.server.as_keystore(),
        **realm.truststore(),
    }
    modules = login_modules()
    for listener in ("sasl_plaintext", "sasl_ssl"):
        for mechanism in mechanisms:
            name = f"listener.name.{listener}.{mechanism.lower()}.sasl.jaas.config"
            keys[name] = modules[mechanism]
    return keys


def login_modules() -> dict[str, str]:
    """A broker's `sasl.jaas.config`, by mechanism: users it knows, and who it is itself."""
    users = " ".join(f"user_{name}={quoted(password)}" for name, password in PASSWORDS.items())
    own = f"username={quoted(ADMIN)} password={quoted(PASSWORDS[ADMIN])}"
    scram = f"{SECURITY}.scram.ScramLoginModule required {own};"
    return {
        "PLAIN": f"{SECURITY}.plain.PlainLoginModule required {own} {users};",
        "SCRAM-SHA-256": scram,
        "SCRAM-SHA-512": scram,
        "OAUTHBEARER": (
            f"{SECURITY}.oauthbearer.OAuthBearerLoginModule required "
            f"unsecuredLoginStringClaim_sub={quoted(ADMIN)};"
        ),
    }


def make_scram_users(bootstrap: str) -> None:
    """Store all users' credentials in the cluster, for both mechanisms."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for mechanism in SCRAM.values():
        wanted: list[UserScramCredentialAlteration] = [
            UserScramCredentialUpsertion(
                name, ScramCredentialInfo(mechanism, ITERATIONS), password.encode()
            )
            for name, password in PASSWORDS.items()
        ]
        for answer in admin.alter_user_scram_credentials(wanted).values():
            answer.result(ANSWER_SECONDS)
