"""Authorisation, principals, delegation tokens and stored secrets."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import LOW, PER_BROKER, boolean, class_name, integer, long, password, string
from config.rules import Principals


@dataclass(frozen=True, init=False, repr=False, eq=False)
class SecurityKeys:
    """Authorisation, principals, delegation tokens and stored secrets."""

    allow_everyone_if_no_acl_found: bool = boolean(
        False, name="allow.everyone.if.no.acl.found", importance=LOW, acts=True
    )
    """Allow everybody access to resources without access control lists."""

    authorizer_class_name: str = string("", importance=LOW, acts=True)
    """Class name of the authorizer, one of Apache Kafka's two; empty allows everything.

    `kafka.security.authorizer.AclAuthorizer` or
    `org.apache.kafka.metadata.authorizer.StandardAuthorizer`."""

    connections_max_reauth_ms: int = long(0, acts=True)
    """Time after which a SASL client must authenticate again; 0 is never."""

    delegation_token_expiry_check_interval_ms: int = long(
        3_600_000, low=1, importance=LOW, acts=True
    )
    """Interval between checks for expired delegation tokens."""

    delegation_token_expiry_time_ms: int = long(86_400_000, low=1, acts=True)
    """Life of a delegation token that is not renewed."""

    delegation_token_master_key: str | None = password(acts=True)
    """Older name of `delegation.token.secret.key`."""

    delegation_token_max_lifetime_ms: int = long(604_800_000, low=1, acts=True)
    """Life of a delegation token, renewed or not."""

    delegation_token_secret_key: str | None = password(acts=True)
    """Secret that delegation tokens are made and checked with."""

    password_encoder_cipher_algorithm: str = string(
        "AES/CBC/PKCS5Padding", importance=LOW, acts=True
    )
    """Cipher of passwords kept in ZooKeeper."""

    password_encoder_iterations: int = integer(4096, low=1024, importance=LOW, acts=True)
    """Iterations with which the key of that cipher is derived."""

    password_encoder_key_length: int = integer(128, low=8, importance=LOW, acts=True)
    """Length of that key."""

    password_encoder_keyfactory_algorithm: str | None = string(None, importance=LOW, acts=True)
    """Algorithm by which that key is derived."""

    password_encoder_old_secret: str | None = password(acts=True)
    """Secret passwords were kept with before."""

    password_encoder_secret: str | None = password(acts=True)
    """Secret passwords are kept with."""

    principal_builder_class: str | None = class_name(
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        scope=PER_BROKER,
        needs_restart=True,
    )
    """Java class that derives the principal of a connection."""

    security_inter_broker_protocol: str = string(
        "PLAINTEXT", choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"), acts=True
    )
    """Security protocol between brokers, unless a listener is named for it."""

    security_providers: str | None = string(None, importance=LOW)
    """Java classes that supply security algorithms."""

    super_users: str = string("", rule=Principals(), importance=LOW, acts=True)
    """Principals with all permissions, as `User:admin;User:broker`."""
