"""TLS."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import LOW, PER_BROKER, boolean, class_name, password, string, strings


@dataclass(frozen=True, init=False, repr=False, eq=False)
class TlsKeys:
    """TLS."""

    ssl_allow_dn_changes: bool = boolean(False, importance=LOW)

    ssl_allow_san_changes: bool = boolean(False, importance=LOW)

    ssl_cipher_suites: tuple[str, ...] = strings(scope=PER_BROKER)

    ssl_client_auth: str = string(
        "none", choices=("required", "requested", "none"), scope=PER_BROKER
    )

    ssl_enabled_protocols: tuple[str, ...] = strings("TLSv1.2", "TLSv1.3", scope=PER_BROKER)

    ssl_endpoint_identification_algorithm: str = string("https", importance=LOW, scope=PER_BROKER)

    ssl_engine_factory_class: str | None = class_name(importance=LOW, scope=PER_BROKER)

    ssl_key_password: str | None = password(scope=PER_BROKER)

    ssl_keymanager_algorithm: str = string("SunX509", scope=PER_BROKER)

    ssl_keystore_certificate_chain: str | None = password(scope=PER_BROKER)

    ssl_keystore_key: str | None = password(scope=PER_BROKER)

    ssl_keystore_location: str | None = string(None, scope=PER_BROKER)

    ssl_keystore_password: str | None = password(scope=PER_BROKER)

    ssl_keystore_type: str = string("JKS", scope=PER_BROKER)

    ssl_principal_mapping_rules: str = string("DEFAULT", importance=LOW)

    ssl_protocol: str = string("TLSv1.3", scope=PER_BROKER)

    ssl_provider: str | None = string(None, scope=PER_BROKER)

    ssl_secure_random_implementation: str | None = string(None, importance=LOW, scope=PER_BROKER)

    ssl_trustmanager_algorithm: str = string("PKIX", scope=PER_BROKER)

    ssl_truststore_certificates: str | None = password(scope=PER_BROKER)

    ssl_truststore_location: str | None = string(None, scope=PER_BROKER)

    ssl_truststore_password: str | None = password(scope=PER_BROKER)

    ssl_truststore_type: str = string("JKS", scope=PER_BROKER)
