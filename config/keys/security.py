"""Authorisation, principals, delegation tokens and stored secrets."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import LOW, PER_BROKER, class_name, integer, long, password, string


@dataclass(frozen=True, init=False, repr=False, eq=False)
class SecurityKeys:
    """Authorisation, principals, delegation tokens and stored secrets."""

    authorizer_class_name: str = string("", importance=LOW)

    connections_max_reauth_ms: int = long(0)

    delegation_token_expiry_check_interval_ms: int = long(3_600_000, low=1, importance=LOW)

    delegation_token_expiry_time_ms: int = long(86_400_000, low=1)

    delegation_token_master_key: str | None = password()

    delegation_token_max_lifetime_ms: int = long(604_800_000, low=1)

    delegation_token_secret_key: str | None = password()

    password_encoder_cipher_algorithm: str = string("AES/CBC/PKCS5Padding", importance=LOW)

    password_encoder_iterations: int = integer(4096, low=1024, importance=LOW)

    password_encoder_key_length: int = integer(128, low=8, importance=LOW)

    password_encoder_keyfactory_algorithm: str | None = string(None, importance=LOW)

    password_encoder_old_secret: str | None = password()

    password_encoder_secret: str | None = password()

    principal_builder_class: str | None = class_name(
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        scope=PER_BROKER,
    )

    security_inter_broker_protocol: str = string(
        "PLAINTEXT", choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
    )

    security_providers: str | None = string(None, importance=LOW)
