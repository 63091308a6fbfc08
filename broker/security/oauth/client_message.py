r"""Messages of an OAUTHBEARER client (RFC 7628, 3.1), and the error sent to a refused one.

    n,a=alice,\x01auth=Bearer eyJhbGciOi…\x01name=value\x01\x01

`a=alice` and further pairs may be left out.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from broker.security.sasl.mechanism import InvalidCredentialsError

SEPARATOR = "\x01"
ABORT = b"\x01"
"""Message of a client after an error, which ends the exchange."""
AUTH = "auth"
INVALID = "Invalid OAUTHBEARER client first message"

_MESSAGE = re.compile(
    r"n,(?:a=(?P<name>(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+))?,\x01"
    r"(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01"
)
_AUTH = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.ASCII)


@dataclass(frozen=True, slots=True, repr=False)
class ClientMessage:
    """The parts of a client's first message. Further pairs are checked and not kept."""

    token: str
    authorisation_id: str = ""
    """Authorization id: empty, or the token's user."""


def parse_client_message(message: bytes) -> ClientMessage:
    """Take a message apart. Raises InvalidCredentialsError."""
    match = _MESSAGE.fullmatch(message.decode(errors="replace"))
    if match is None:
        raise InvalidCredentialsError(INVALID)
    pairs = dict(pair.split("=", 1) for pair in match["pairs"].split(SEPARATOR) if pair)
    if AUTH not in pairs:
        raise InvalidCredentialsError(f"{INVALID}: 'auth' not specified")
    auth = _AUTH.fullmatch(pairs[AUTH])
    if auth is None:
        raise InvalidCredentialsError(f"{INVALID}: invalid 'auth' format")
    if auth["scheme"].lower() != "bearer":
        raise InvalidCredentialsError(f"Invalid scheme in OAUTHBEARER message: {auth['scheme']!r}")
    return ClientMessage(auth["token"], match["name"] or "")


def client_message(token: str, extensions: dict[str, str] | None = None) -> bytes:
    """The first message of a client that shows `token`."""
    pairs = {AUTH: f"Bearer {token}", **(extensions or {})}
    written = "".join(f"{name}={value}{SEPARATOR}" for name, value in pairs.items())
    return f"n,,{SEPARATOR}{written}{SEPARATOR}".encode()


def refusal(status: str, scope: str | None) -> str:
    """The error of a token that is not valid, with spaces where Apache Kafka has them."""
    shown = "" if scope is None else f', "scope":{json.dumps(scope)}'
    return f'{{"status":"{status}"{shown}}}'
