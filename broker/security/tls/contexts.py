"""OpenSSL contexts from Apache's keys: built on a thread, as files are read and keys encrypted.

Some settings of Java have no equivalent in OpenSSL: providers, managers of keys and of trust,
sources of randomness and engine factories have no effect.
"""

from __future__ import annotations

import secrets
import ssl
import tempfile
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
)

from broker.security.tls.cipher_suites import before_tls_1_3, has_tls_1_3
from broker.security.tls.stores import read_trusted
from config.errors import ConfigError, invalid

if TYPE_CHECKING:
    from broker.security.tls.stores import Identity
    from config.broker import BrokerConfig

_VERSIONS = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
_ORDER = tuple(_VERSIONS)
_CLIENT_AUTH = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


def server_context(
    config: BrokerConfig, identity: Identity | None, client_auth: str
) -> ssl.SSLContext:
    """For handshakes with clients; `client_auth` as `ssl.client.auth`. Raises ConfigError."""
    if identity is None:
        key = "ssl.keystore.location"
        raise ConfigError(f"{key} is not set: a listener with TLS needs a certificate", key)
    context = _context(ssl.PROTOCOL_TLS_SERVER, config)
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.verify_mode = _CLIENT_AUTH[client_auth]
    _show(context, identity)
    if context.verify_mode is not ssl.CERT_NONE:
        _trust(context, config, ssl.Purpose.CLIENT_AUTH)
    return context


def client_context(config: BrokerConfig, identity: Identity | None) -> ssl.SSLContext:
    """For handshakes with other brokers. Raises ConfigError."""
    context = _context(ssl.PROTOCOL_TLS_CLIENT, config)
    algorithm = config.ssl_endpoint_identification_algorithm
    if algorithm.lower() not in ("", "https"):
        key = "ssl.endpoint.identification.algorithm"
        raise invalid(key, algorithm, "it must be https, or empty for no check of host names")
    context.check_hostname = bool(algorithm)
    if identity is not None:
        _show(context, identity)
    _trust(context, config, ssl.Purpose.SERVER_AUTH)
    return context


def refuse_unless_they_agree(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """Have a client shake hands with a server, both in memory; raises ssl.SSLError.

    The client's check of host names is left to callers that know the host.
    """
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    checked, client.check_hostname = client.check_hostname, False
    try:
        ends = [
            client.wrap_bio(to_client, to_server),
            server.wrap_bio(to_server, to_client, server_side=True),
        ]
    finally:
        client.check_hostname = checked
    waiting = list(ends)
    while waiting:
        pending = (to_server.pending, to_client.pending)
        waiting = [end for end in waiting if not _has_shaken_hands(end)]
        if waiting and pending == (to_server.pending, to_client.pending) != (0, 0):
            raise ssl.SSLError("the handshake does not end")
    ends[0].write(b"?")  # with TLS 1.3 a client hears only now whether its certificate will do
    ends[1].read(1)


def _has_shaken_hands(end: ssl.SSLObject) -> bool:
    try:
        end.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


def _context(side: int, config: BrokerConfig) -> ssl.SSLContext:
    context = ssl.SSLContext(side)
    # As in Java, each certificate in a trust store is trusted, whether an authority's or not.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    _limit_versions(context, config)
    older = before_tls_1_3(config.ssl_cipher_suites)
    if older:
        _choose(context, older, config)
    return context


def _limit_versions(context: ssl.SSLContext, config: BrokerConfig) -> None:
    key, suites = "ssl.enabled.protocols", config.ssl_cipher_suites
    wanted = config.ssl_enabled_protocols or (config.ssl_protocol,)
    if suites and not has_tls_1_3(suites):
        wanted = tuple(version for version in wanted if version != "TLSv1.3")
    elif suites and not before_tls_1_3(suites):
        wanted = tuple(version for version in wanted if version == "TLSv1.3")
    shown = ",".join(config.ssl_enabled_protocols)
    unknown = [version for version in wanted if version not in _VERSIONS]
    if unknown:
        raise invalid(key, shown, f"{unknown[0]} is none of {', '.join(_ORDER)}")
    if not wanted:
        raise invalid(key, shown, "no suite of ssl.cipher.suites is for one of these versions")
    places = sorted({_ORDER.index(version) for version in wanted})
    if places[-1] - places[0] >= len(places):
        raise invalid(key, shown, "a version between two that are enabled cannot be left out")
    context.minimum_version = _VERSIONS[_ORDER[places[0]]]
    context.maximum_version = _VERSIONS[_ORDER[places[-1]]]


def _choose(context: ssl.SSLContext, suites: tuple[str, ...], config: BrokerConfig) -> None:
    key, shown = "ssl.cipher.suites", ",".join(config.ssl_cipher_suites)
    try:
        context.set_ciphers(":".join(suites))
    except ssl.SSLError:
        raise invalid(key, shown, "OpenSSL has none of them") from None
    known = {one["name"] for one in context.get_ciphers()}
    for suite in suites:
        if suite not in known:
            raise invalid(key, shown, f"OpenSSL has no {suite}")


def _show(context: ssl.SSLContext, identity: Identity) -> None:
    """Load the private key. Only a file will do: it gets one, encrypted with a drawn password."""
    password = secrets.token_bytes(32).hex()
    sealed = identity.key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password.encode())
    )
    chain = b"".join(one.public_bytes(Encoding.PEM) for one in identity.chain)
    with tempfile.NamedTemporaryFile() as file:
        file.write(sealed + chain)
        file.flush()
        try:
            context.load_cert_chain(file.name, password=password)
        except ssl.SSLError as error:
            reason = (error.reason or str(error)).replace("_", " ").lower()
            raise ConfigError(
                f"the key store cannot be used: {reason}", "ssl.keystore.type"
            ) from None


def _trust(context: ssl.SSLContext, config: BrokerConfig, purpose: ssl.Purpose) -> None:
    trusted = read_trusted(config)
    if trusted is None:
        context.load_default_certs(purpose)
    else:
        der = b"".join(one.public_bytes(Encoding.DER) for one in trusted)
        context.load_verify_locations(cadata=der)
