"""Command line: `python -m broker.health --config server.properties [--override key=value]…`.

Connects to the first listener of the file, of those without TLS if there are any, and sends
ApiVersions, which every listener answers before authentication. Exit code 0 if it is answered.
"""

from __future__ import annotations

import argparse
import os
import socket
import ssl
import struct
import sys
from typing import TYPE_CHECKING, Final

from broker.runtime.addresses.host_names import system_host
from config.errors import ConfigError
from config.listeners.addresses import is_every_interface
from config.listeners.endpoints import bound_endpoints
from config.loader import load_broker_config
from config.machine.own_program import usage_name
from protocol.messages.api_versions import ApiVersionsRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from config.listeners.endpoints import Endpoint

EXIT_OK, EXIT_FAILED = 0, 1
TIMEOUT_SECONDS: Final = 5.0
TLS: Final = ("SSL", "SASL_SSL")
CORRELATION_ID: Final = 42
NO_CLIENT_ID: Final = -1
REQUEST: Final = struct.pack(
    ">ihhih", 10, ApiVersionsRequest.API_KEY, 0, CORRELATION_ID, NO_CLIENT_ID
)
LOCAL: Final = "127.0.0.1"


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask; returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        config, _ = load_broker_config(options.config, options.override, os.environ)
        endpoints = bound_endpoints(config)
    except ConfigError as error:
        return _fail(str(error))
    endpoint = min(endpoints, key=lambda one: one.protocol in TLS)
    try:
        _ask(endpoint, options.timeout)
    except OSError as error:
        return _fail(f"{endpoint} does not answer: {error}")
    return EXIT_OK


def _ask(endpoint: Endpoint, seconds: float) -> None:
    """Have ApiVersions answered. Raises OSError."""
    host = LOCAL if is_every_interface(endpoint.host) else system_host(endpoint.host)
    with socket.create_connection((host, endpoint.port), seconds) as connection:
        if endpoint.protocol not in TLS:
            _exchange(connection)
            return
        context = ssl.create_default_context()
        context.check_hostname = False  # it only reports its health, and gets no data
        context.verify_mode = ssl.CERT_NONE
        try:
            with context.wrap_socket(connection) as secured:
                _exchange(secured)
        except ssl.SSLError as error:
            if "CERTIFICATE_REQUIRED" not in str(error.reason):  # which is an answer, too
                raise


def _exchange(connection: socket.socket) -> None:
    connection.sendall(REQUEST)
    with connection.makefile("rb") as answers:
        begin = answers.read(8)
    if len(begin) < 8 or struct.unpack(">ii", begin)[1] != CORRELATION_ID:  # noqa: PLR2004
        raise ConnectionError(f"{len(begin)} bytes that are no answer")


def _fail(why: str) -> int:
    print(why, file=sys.stderr)  # noqa: T201
    return EXIT_FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=usage_name("broker.health"),
        description="Asks a broker whether it answers.",
        allow_abbrev=False,
    )
    parser.add_argument("--config", required=True, metavar="FILE", help="the broker's")
    parser.add_argument(
        "--override", action="append", default=[], metavar="KEY=VALUE", help="as for the broker"
    )
    parser.add_argument("--timeout", type=float, default=TIMEOUT_SECONDS, metavar="SECONDS")
    return parser


if __name__ == "__main__":
    sys.exit(main())
