"""Checks that a new key store is for the same broker as the one it replaces.

Apache's `SslFactory`: a new certificate has the same distinguished name, unless
`ssl.allow.dn.changes`, and at least the same alternative names, unless `ssl.allow.san.changes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cryptography import x509

from broker.security.tls.distinguished_names import text_of
from config.errors import ConfigError

if TYPE_CHECKING:
    from config.broker import BrokerConfig


def refuse_another_identity(
    old: x509.Certificate, new: x509.Certificate, config: BrokerConfig
) -> None:
    """Raises ConfigError."""
    if not config.ssl_allow_dn_changes:
        was, would_be = text_of(old.subject), text_of(new.subject)
        if was.lower() != would_be.lower():
            raise ConfigError(
                f"Keystore DistinguishedName does not match: it is {was}, and would be {would_be} "
                "(ssl.allow.dn.changes=false)"
            )
    if not config.ssl_allow_san_changes:
        missing = _alternative_names(old) - _alternative_names(new)
        if missing:
            raise ConfigError(
                f"Keystore SubjectAltNames do not match: {', '.join(sorted(missing))} would be "
                "missing (ssl.allow.san.changes=false)"
            )


def _alternative_names(certificate: x509.Certificate) -> set[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    return {str(getattr(name, "value", name)) for name in names}
