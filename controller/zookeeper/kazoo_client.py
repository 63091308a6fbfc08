"""kazoo's client, with its behaviour changed where a broker needs another.

It would keep a request made without a connection, and send it after reconnecting, however late. A
broker that has answered its client with an error must not do that; so `GatedClient` refuses such a
request, under the lock that guards the connection's state.

It waits for the first answer on a connection as long as the session may last. A server that is just
starting may accept a connection and never answer; the session would have expired before the next
attempt. So each attempt gets a part of that time.

Its thread ends at the first unknown error, such as a failed name look-up without a file descriptor,
and when SASL fails, even if only because the server went away meanwhile; it would never reconnect.
Here every error is a failed attempt.

It announces a connection before SASL has succeeded on it. Here requests are refused until then.

Changes to its sockets are in `sockets`.
"""

from __future__ import annotations

import logging
import ssl
import threading
from typing import TYPE_CHECKING, Any, Protocol

from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, KazooException, SASLException
from kazoo.protocol.connection import ConnectionDropped
from kazoo.protocol.states import KeeperState
from kazoo.retry import ForceRetryError

from controller.zookeeper.security import UNPROTECTED
from controller.zookeeper.sockets import Sockets, reason_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from controller.zookeeper.security import DigestLogin, ZooKeeperSecurity

ATTEMPT_PART = 1 / 6
"""The part of the session timeout that one attempt to connect may take, or a second if that is
more."""

SHORTEST_ATTEMPT_SECONDS = 1.0

RECONNECT = {"max_tries": -1, "delay": 0.1, "backoff": 2, "max_delay": 1.0}

_CONNECTED = (KeeperState.CONNECTED, KeeperState.CONNECTED_RO)

logger = logging.getLogger(__name__)


class NotConnectedError(Exception):
    """The request was not sent."""


class Answer(Protocol):
    """Receives the answer to a request, from any thread."""

    def set(self, value: object = None) -> None:
        """Receive the answer."""

    def set_exception(self, error: BaseException) -> None:
        """Receive the error."""


class GatedClient(KazooClient):  # type: ignore[misc]
    """A client that refuses requests without a connection, and limits each attempt to connect."""

    def __init__(
        self, *, timeout: float, security: ZooKeeperSecurity = UNPROTECTED, **more: object
    ) -> None:
        self._gate = threading.RLock()
        self._login = security.login
        self._announced_early: str | None = None
        self.last_failure = ""
        """Reason why the last attempt to connect failed, if it concerns an operator."""

        attempt = max(timeout * ATTEMPT_PART, SHORTEST_ATTEMPT_SECONDS)
        super().__init__(
            timeout=timeout,
            handler=Sockets(attempt, security.tls, self._note_failure),
            connection_retry=RECONNECT,
            logger=_quiet_logger(),
            sasl_options=_sasl_options(security.login),
            **more,
        )
        self._change_connection(self._connection, attempt)

    def submit(self, request: object, result: Answer) -> None:
        """Queue the request, or fail `result` at once."""
        with self._gate:
            if self.connected:
                self._call(request, result)
                return
        result.set_exception(NotConnectedError())

    def _change_connection(self, connection: Any, attempt: float) -> None:  # noqa: ANN401
        """Put our steps in the place of kazoo's, which has no settings for them."""
        invoke, connect = connection._invoke, connection._connect_loop  # noqa: SLF001
        authenticate = connection._authenticate_with_sasl  # noqa: SLF001

        def invoke_sooner(timeout: float, *args: Any) -> Any:  # noqa: ANN401
            try:
                return invoke(min(timeout, attempt), *args)
            except ConnectionDropped as error:
                if isinstance(error.__context__, ssl.SSLError):  # TLS 1.3 refuses us only now
                    self._note_failure(f"TLS handshake failed: {reason_of(error.__context__)}")
                raise

        connection._invoke = invoke_sooner  # noqa: SLF001
        connection._connect_loop = lambda retry: self._connect(connect, retry)  # noqa: SLF001
        connection._authenticate_with_sasl = lambda host, timeout: self._authenticate(  # noqa: SLF001
            authenticate, host, min(timeout, attempt)
        )

    def _connect(self, connect: Callable[[Any], object], retry: Any) -> object:  # noqa: ANN401
        """Connect, and serve the connection until any error breaks it."""
        try:
            return connect(retry)
        except (*retry.retry_exceptions, KazooException):
            raise
        except Exception as error:
            if repr(error) != self.last_failure:
                self.last_failure = repr(error)
                logger.exception("ZooKeeper is connected to again after an unforeseen error")
            raise ForceRetryError from error

    def _authenticate(
        self, authenticate: Callable[[str, float], None], host: str, timeout: float
    ) -> None:
        """Log in by SASL; only then is the connection announced."""
        try:
            authenticate(host, timeout)
        except (AuthFailedError, SASLException) as error:
            if not isinstance(error.__cause__, ConnectionDropped):
                self._note_failure(f"SASL authentication failed for {self._user}")
            raise ConnectionDropped("SASL did not succeed") from error
        announced, self._announced_early = self._announced_early, None
        if announced is not None:
            with self._gate:
                super()._session_callback(announced)

    def _session_callback(self, state: str) -> None:
        if state in _CONNECTED and self._login is not None:
            self._announced_early = state
            return
        with self._gate:
            super()._session_callback(state)

    @property
    def _user(self) -> str:
        return repr(self._login.username) if self._login else "nobody"

    def _note_failure(self, failure: str) -> None:
        if failure != self.last_failure:
            self.last_failure = failure
            logger.error("ZooKeeper %s", failure)


def _sasl_options(login: DigestLogin | None) -> dict[str, str] | None:
    if login is None:
        return None
    return {"mechanism": "DIGEST-MD5", "username": login.username, "password": login.password}


def _quiet_logger() -> logging.Logger:
    """For kazoo, which logs each attempt to connect; here each change is logged once."""
    quiet = logging.getLogger(f"{__name__}.kazoo")
    quiet.setLevel(logging.CRITICAL)
    return quiet
