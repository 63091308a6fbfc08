"""Sockets for kazoo, with a short timeout for connecting, and with the TLS of the caller.

kazoo would make a TLS context of its own for each connection, from PEM files. And it would wait for
bytes that the socket has already received and decrypted.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

from kazoo.handlers.threading import SequentialThreadingHandler

if TYPE_CHECKING:
    from collections.abc import Callable


class Sockets(SequentialThreadingHandler):  # type: ignore[misc]
    """Threads and sockets for kazoo, with a short timeout for connecting, and with TLS."""

    def __init__(
        self, attempt_seconds: float, tls: ssl.SSLContext | None, on_failure: Callable[[str], None]
    ) -> None:
        super().__init__()
        self._attempt_seconds = attempt_seconds
        self._tls = tls
        self._on_failure = on_failure

    def create_connection(
        self,
        address: tuple[str, int],
        *,
        timeout: float,
        hostname: str | None = None,
        **_: object,
    ) -> Any:  # noqa: ANN401
        """Connect, and shake hands; `address` is the IP address of `hostname`, without its zone.

        kazoo's other arguments are for a TLS context of its own.
        """
        seconds = min(timeout, self._attempt_seconds)
        if hostname is not None and "%" in hostname:
            address = hostname, address[1]
        connection = super().create_connection(address, timeout=seconds)
        if self._tls is None:
            return connection
        try:
            connection.settimeout(seconds)
            return self._tls.wrap_socket(connection, server_hostname=hostname)
        except OSError as error:
            connection.close()
            server = f"{hostname}:{address[1]}"
            self._on_failure(f"TLS handshake failed with {server}: {reason_of(error)}")
            raise

    def select(self, readers: Any, *others: Any) -> Any:  # noqa: ANN401
        """Wait as `select` does, but not for bytes that TLS has received and decrypted."""
        decrypted = [each for each in readers if isinstance(each, ssl.SSLSocket) and each.pending()]
        if not decrypted:
            return super().select(readers, *others)
        *sets, _ = others
        ready, *rest = super().select(readers, *sets, 0)
        return [*decrypted, *(each for each in ready if each not in decrypted)], *rest


def reason_of(error: OSError) -> str:
    """Return OpenSSL's reason, explained when the other side does not speak TLS."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        if error.reason in {"WRONG_VERSION_NUMBER", "UNEXPECTED_EOF_WHILE_READING"}:
            return f"{error.reason}; is this ZooKeeper's secureClientPort?"
        return str(error.reason)
    return str(error) or type(error).__name__
