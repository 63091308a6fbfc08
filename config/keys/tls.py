"""TLS: keys, certificates, versions."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import LOW, PER_BROKER, boolean, class_name, password, string, strings


@dataclass(frozen=True, init=False, repr=False, eq=False)
class TlsKeys:
    """TLS: keys, certificates, versions."""

    ssl_allow_dn_changes: bool = boolean(False, importance=LOW, acts=True)
    """Allow a reloaded certificate to have another distinguished name."""

    ssl_allow_san_changes: bool = boolean(False, importance=LOW, acts=True)
    """Allow a reloaded certificate to have other alternative names."""

    ssl_cipher_suites: tuple[str, ...] = strings(scope=PER_BROKER, acts=True)
    """Cipher suites that are offered; empty is the platform's choice."""

    ssl_client_auth: str = string(
        "none", choices=("required", "requested", "none"), scope=PER_BROKER, acts=True
    )
    """Client authentication by certificate: `required`, `requested` or `none`."""

    ssl_enabled_protocols: tuple[str, ...] = strings(
        "TLSv1.2", "TLSv1.3", scope=PER_BROKER, acts=True
    )
    """TLS versions that are accepted."""

    ssl_endpoint_identification_algorithm: str = string(
        "https", importance=LOW, scope=PER_BROKER, acts=True
    )
    """Algorithm that checks the other side's host name; empty disables the check."""

    ssl_engine_factory_class: str | None = class_name(importance=LOW, scope=PER_BROKER)
    """Java class that sets TLS up."""

    ssl_key_password: str | None = password(scope=PER_BROKER, acts=True)
    """Password of the private key."""

    ssl_keymanager_algorithm: str = string("SunX509", scope=PER_BROKER)
    """Java's name for how keys are chosen."""

    ssl_keystore_certificate_chain: str | None = password(scope=PER_BROKER, acts=True)
    """This broker's certificates, as PEM text."""

    ssl_keystore_key: str | None = password(scope=PER_BROKER, acts=True)
    """This broker's private key, as PEM text."""

    ssl_keystore_location: str | None = string(None, scope=PER_BROKER, acts=True)
    """File with this broker's key and certificates."""

    ssl_keystore_password: str | None = password(scope=PER_BROKER, acts=True)
    """Password of that file."""

    ssl_keystore_type: str = string("JKS", scope=PER_BROKER, acts=True)
    """Format of that file: `JKS`, `PKCS12` or `PEM`."""

    ssl_principal_mapping_rules: str = string("DEFAULT", importance=LOW, acts=True)
    """Rules that map a certificate's name to a principal."""

    ssl_protocol: str = string("TLSv1.3", scope=PER_BROKER, acts=True)
    """TLS version to begin with."""

    ssl_provider: str | None = string(None, scope=PER_BROKER)
    """Java security provider of TLS."""

    ssl_secure_random_implementation: str | None = string(None, importance=LOW, scope=PER_BROKER)
    """Java's name for the source of randomness."""

    ssl_trustmanager_algorithm: str = string("PKIX", scope=PER_BROKER)
    """Java's name for how certificates are checked."""

    ssl_truststore_certificates: str | None = password(scope=PER_BROKER, acts=True)
    """Certificates that others' must lead to, as PEM text."""

    ssl_truststore_location: str | None = string(None, scope=PER_BROKER, acts=True)
    """File with the certificates that others' must lead to."""

    ssl_truststore_password: str | None = password(scope=PER_BROKER, acts=True)
    """Password of that file."""

    ssl_truststore_type: str = string("JKS", scope=PER_BROKER, acts=True)
    """Format of that file: `JKS`, `PKCS12` or `PEM`."""
