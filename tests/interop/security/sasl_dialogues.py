"""Frames of an authentication, in and out of order, and what a broker makes of them."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass
from ssl import SSLEOFError
from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.headers import response_header_bytes
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.fetch import FetchRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.group_membership import HeartbeatRequest
from protocol.messages.groups import ListGroupsRequest
from protocol.messages.metadata import MetadataRequest
from protocol.messages.produce import ProduceRequest
from protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from protocol.wire import DecodeError
from tests.support.security.realm import ALICE, PASSWORDS
from tests.support.wire import ConnectionClosedError, RawConnection, request_header

if TYPE_CHECKING:
    from collections.abc import Sequence
    from ssl import SSLContext

    from protocol.schema import Request, Response

ANSWER_SECONDS = 10.0
CLOSED, SILENCE = "closed", "no answer"
_ILLEGAL = struct.pack(">h", ErrorCode.ILLEGAL_SASL_STATE)
SCRAM_FIRST = b"n,,n=alice,r=nonce"


@dataclass(frozen=True, slots=True)
class Frame:
    """Bytes to send, and how to read the answer."""

    name: str
    content: bytes
    key: int = -1
    version: int = 0
    is_whole: bool = False
    """The content begins with a size of its own."""


def request(name: str, message: Request, version: int, *, said: int | None = None) -> Frame:
    """Make a request in a version; `said` is the version in its header, if another."""
    kind = type(message)
    tags = b"\0" if version in kind.FLEXIBLE else b""
    header = request_header(kind.API_KEY, version if said is None else said)
    return Frame(name, header + tags + message.encode(version), kind.API_KEY, version)


def versions(version: int, software: str = "test") -> Frame:
    message = ApiVersionsRequest()
    if version >= 3:
        message = ApiVersionsRequest(client_software_name=software, client_software_version="1")
    return request(f"versions {version} of {software or 'nobody'}", message, version)


def handshake(mechanism: str, version: int) -> Frame:
    message = SaslHandshakeRequest(mechanism=mechanism)
    return request(f"handshake {version} for {mechanism or 'nothing'}", message, version)


def authenticate(name: str, token: bytes, version: int) -> Frame:
    message = SaslAuthenticateRequest(auth_bytes=token)
    return request(f"{name} in authenticate {version}", message, version)


def _plain(user: str, password: str, wanted: str = "") -> bytes:
    return f"{wanted}\0{user}\0{password}".encode()


RIGHT = _plain(ALICE, PASSWORDS[ALICE])
TOKENS = {
    "right password": RIGHT,
    "another's right password": _plain("bob", PASSWORDS["bob"]),
    "wrong password": _plain(ALICE, "guess"),
    "unknown user": _plain("mallory", "guess"),
    "another's name": _plain(ALICE, PASSWORDS[ALICE], "bob"),
    "own name": _plain(ALICE, PASSWORDS[ALICE], ALICE),
    "two parts": b"alice\0secret",
    "four parts": b"\0alice\0secret\0",
    "no name": b"\0\0secret",
    "no password": b"\0alice\0",
    "nothing": b"",
    "no UTF-8": b"\0\xff\0\xfe",
    "SCRAM's first": SCRAM_FIRST,
    "SCRAM's first of another": b"n,a=bob,n=alice,r=nonce",
    "SCRAM with binding": b"p=tls-unique,,n=alice,r=nonce",
    "SCRAM of a token": b"n,,n=alice,r=nonce,tokenauth=false",
    "SCRAM's proof": b"c=biws,r=nonce,p=AAAA",
}
_PARTITION = ProduceRequest.TopicData.PartitionData(index=3, records=b"batch")
_BATCHES = [ProduceRequest.TopicData(name="orders", partition_data=[_PARTITION])]
_WANTED = FetchRequest.Topic(
    topic="orders",
    partitions=[FetchRequest.Topic.Partition(partition=3, fetch_offset=7, partition_max_bytes=1)],
)
_FETCH = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[_WANTED])
_ASKED = MetadataRequest(topics=[MetadataRequest.Topic(name="orders")])
METADATA = request("metadata", MetadataRequest(topics=[]), 9)
OTHERS = (
    METADATA,
    *(request(f"metadata {version} of a topic", _ASKED, version) for version in (0, 9, 13)),
    request("metadata of all", MetadataRequest(topics=None), 12),
    *(
        request(f"produce with acks={acks}", _batch, 9)
        for acks in (0, -1)
        for _batch in (ProduceRequest(acks=acks, timeout_ms=1, topic_data=_BATCHES),)
    ),
    *(request(f"fetch {version}", _FETCH, version) for version in (4, 11)),
    request("fetch 17", FetchRequest(max_wait_ms=0, min_bytes=0, topics=[]), 17),
    request("find coordinator", FindCoordinatorRequest(key="readers"), 0),
    request("heartbeat", HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 4),
    request("groups", ListGroupsRequest(), 4),
    Frame("metadata with more behind it", METADATA.content + b"more"),
)
"""Requests that may come only from a client that is authenticated."""
_TOO_NEW = {
    "versions": request("versions 99", ApiVersionsRequest(), 0, said=99),
    "handshake": request("handshake 2", SaslHandshakeRequest(mechanism="PLAIN"), 1, said=2),
    "authenticate": request("authenticate 3", SaslAuthenticateRequest(auth_bytes=RIGHT), 2, said=3),
}
FRAMES = (
    *(versions(version) for version in (0, 1, 3, 4)),
    versions(3, ""),
    *(handshake("PLAIN", version) for version in (0, 1, 1, 1, 1)),
    *(handshake(name, 1) for name in ("SCRAM-SHA-256", "SCRAM-SHA-512", "CRAM-MD5", "", "plain")),
    handshake("SCRAM-SHA-256", 0),
    *(authenticate("right password", RIGHT, version) for version in (0, 1, 2, 2, 2)),
    *(authenticate(name, token, 1) for name, token in TOKENS.items()),
    *(Frame(f"bare {name}", token) for name, token in TOKENS.items()),
    Frame("bare right password", RIGHT),
    *OTHERS,
    *_TOO_NEW.values(),
    Frame("cut metadata", METADATA.content[:-2]),
    request("metadata 99", MetadataRequest(topics=[]), 9, said=99),
    Frame("cut handshake", handshake("PLAIN", 1).content[:-3]),
    Frame("cut header", handshake("PLAIN", 1).content[:7]),
    Frame("empty", b""),
    Frame("garbage", b"\x60\x82\x01\x00 a token of Kerberos"),
    Frame("unknown API", request_header(999, 0)),
    Frame("frame too large", struct.pack(">i", 1 << 20), is_whole=True),
    Frame("frame of negative size", struct.pack(">i", -1), is_whole=True),
)
BY_NAME = {frame.name: frame for frame in FRAMES}
KNOWN = (handshake("PLAIN", 1), BY_NAME["right password in authenticate 2"])
"""Frames that authenticate a client."""
AMONG_TOKENS = tuple(
    (*before, other)
    for before in (
        (handshake("PLAIN", 1),),
        (handshake("SCRAM-SHA-256", 1), BY_NAME["SCRAM's first in authenticate 1"]),
        (*KNOWN, handshake("PLAIN", 1)),
    )
    for other in OTHERS
)
"""Other requests, behind a handshake, between two tokens, and while a client is known again."""


def drawn(seed: int, count: int) -> list[tuple[Frame, ...]]:
    """Dialogues of up to six frames, of which many begin as they should."""
    chance = random.Random(seed)
    beginnings: tuple[tuple[Frame, ...], ...] = (
        (),
        (versions(3), handshake("PLAIN", 1)),
        (handshake("PLAIN", 1),),
        (handshake("PLAIN", 0),),
        (handshake("SCRAM-SHA-512", 1),),
        (handshake("PLAIN", 1), BY_NAME["right password in authenticate 2"]),
        (handshake("SCRAM-SHA-256", 1), BY_NAME["SCRAM's first in authenticate 1"]),
        (*KNOWN, handshake("PLAIN", 1)),
    )
    return [
        (*chance.choice(beginnings), *chance.choices(FRAMES, k=chance.randint(1, 4)))
        for _ in range(count)
    ]


def held(port: int, frames: Sequence[Frame], tls: SSLContext | None = None) -> list[str]:
    """Send one frame after the other; what came of each, up to the end of the connection."""
    told = []
    with RawConnection.open(port, ANSWER_SECONDS) as connection:
        if tls is not None:
            connection.socket = tls.wrap_socket(connection.socket, server_hostname="localhost")
        for frame in frames:
            size = b"" if frame.is_whole else struct.pack(">i", len(frame.content))
            try:
                connection.send(size + frame.content)
                answer = connection.receive()
            except TimeoutError:
                told.append(SILENCE)
                break
            except (ConnectionClosedError, ConnectionResetError, BrokenPipeError, SSLEOFError):
                told.append(CLOSED)
                break
            told.append(_shown(frame, answer))
    return told


def _shown(frame: Frame, answer: bytes) -> str:
    """Return the part of an answer that is the same with every broker."""
    if frame in OTHERS:
        # A served answer that names the broker has ids, too, in which the code may occur by chance.
        is_refused = _ILLEGAL in answer and b"localhost" not in answer
        return answer.hex() if is_refused else "served"
    if frame.key == -1:
        return _token(answer)
    kinds: dict[int, type[Response]] = {
        ApiKey.API_VERSIONS: ApiVersionsResponse,
        ApiKey.SASL_HANDSHAKE: SaslHandshakeResponse,
        ApiKey.SASL_AUTHENTICATE: SaslAuthenticateResponse,
    }
    try:
        start = response_header_bytes(frame.key, frame.version)
        message, _ = kinds[frame.key].decode_from(frame.version, answer, start)
    except DecodeError:
        return f"{len(answer)} bytes: {answer!r}"
    if isinstance(message, ApiVersionsResponse):
        return f"versions {message.error_code}"
    if isinstance(message, SaslHandshakeResponse):
        return f"handshake {message.error_code} {sorted(message.mechanisms)}"
    assert isinstance(message, SaslAuthenticateResponse)
    lifetime = message.session_lifetime_ms
    return f"{message.error_code} {message.error_message} {_token(message.auth_bytes)} {lifetime}"


def _token(token: bytes) -> str:
    """A challenge of SCRAM has a nonce and a salt that are drawn."""
    if token.startswith(b"r="):
        parts = token.split(b",")
        return f"challenge {[part[:2] for part in parts]} {parts[-1]!r}"
    return repr(token)
