"""The messages of SCRAM (RFC 5802), as far as Apache Kafka reads them.

    client first   n,[a=authzid],n=name,r=nonce[,tokenauth=true]
    server first   r=nonce and more of it,s=salt,i=iterations
    client final   c=biws,r=that nonce,p=proof
    server final   v=signature

Within names `,` is written =2C and `=` is =3D. Names are ASCII, as in Apache Kafka, and passwords
are not prepared by saslprep, as there. Channel binding is not offered.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from broker.security.sasl.mechanism import InvalidCredentialsError

if TYPE_CHECKING:
    from protocol.scram_types import ScramCredential

_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_NONCE = r"[\x21-\x2b\x2d-\x7e]+"
_EXTENSIONS = r"(?:,[A-Za-z]+=[\x01-\x2b\x2d-\x7f]+)*"
_BASE64 = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"

_CLIENT_FIRST = re.compile(
    rf"n,(?:a=(?P<authzid>{_NAME}))?,"
    rf"(?P<bare>n=(?P<name>{_NAME}),r=(?P<nonce>{_NONCE})(?P<extensions>{_EXTENSIONS}))"
)
_SERVER_FIRST = re.compile(
    rf"r=(?P<nonce>{_NONCE}),s=(?P<salt>{_BASE64}),i=(?P<iterations>[0-9]{{1,9}}){_EXTENSIONS}"
)
_CLIENT_FINAL = re.compile(
    rf"(?P<unproved>c={_BASE64},r=(?P<nonce>{_NONCE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)
_SERVER_FINAL = re.compile(rf"v=(?P<signature>{_BASE64}){_EXTENSIONS}")
_ESCAPES = (("=2C", ","), ("=3D", "="))

NO_BINDING = "biws"
"""Base64 of `n,,`: no channel binding, no authorisation id."""


@dataclass(frozen=True, slots=True)
class ClientFirst:
    """Name of the client that logs in."""

    name: str
    """A user's, or the id of a delegation token."""
    authorisation_id: str
    nonce: str
    bare: str = field(repr=False)
    """The part that is proved."""
    is_token: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class ServerFirst:
    """Challenge for the client."""

    nonce: str
    salt: bytes
    iterations: int


@dataclass(frozen=True, slots=True, repr=False)
class ClientFinal:
    """The proof."""

    nonce: str
    unproved: str
    proof: bytes


def read_client_first(message: bytes) -> ClientFirst:
    """Raises InvalidCredentialsError."""
    match = _matched(_CLIENT_FIRST, message, "client first")
    extensions = dict(part.split("=", 1) for part in match["extensions"].split(",") if part)
    name = match["name"]
    for escape, character in _ESCAPES:
        name = name.replace(escape, character)
    return ClientFirst(
        name,
        match["authzid"] or "",
        match["nonce"],
        match["bare"],
        extensions.get("tokenauth", "").lower() == "true",
    )


def read_server_first(message: bytes) -> ServerFirst:
    """Raises InvalidCredentialsError."""
    match = _matched(_SERVER_FIRST, message, "server first")
    return ServerFirst(match["nonce"], base64.b64decode(match["salt"]), int(match["iterations"]))


def read_client_final(message: bytes) -> ClientFinal:
    """Raises InvalidCredentialsError."""
    match = _matched(_CLIENT_FINAL, message, "client final")
    return ClientFinal(match["nonce"], match["unproved"], base64.b64decode(match["proof"]))


def read_server_final(message: bytes) -> bytes:
    """The signature of the server. Raises InvalidCredentialsError."""
    return base64.b64decode(_matched(_SERVER_FINAL, message, "server final")["signature"])


def server_first(nonce: str, credential: ScramCredential) -> str:
    """Ask for a proof."""
    salt = base64.b64encode(credential.salt).decode()
    return f"r={nonce},s={salt},i={credential.iterations}"


def escaped(name: str) -> str:
    """A name as it stands in a message."""
    for escape, character in reversed(_ESCAPES):
        name = name.replace(character, escape)
    return name


def _matched(pattern: re.Pattern[str], message: bytes, which: str) -> re.Match[str]:
    match = pattern.fullmatch(message.decode(errors="replace"))
    if match is None:
        raise InvalidCredentialsError(f"malformed {which} message")
    return match
