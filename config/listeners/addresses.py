"""Addresses as texts: `host:port` with IPv6 in brackets, and Java's one writing of each address."""

from __future__ import annotations

import re
import struct
from ipaddress import IPv6Address
from typing import Any

HIGHEST_PORT = 65_535

_HOST = r"[0-9a-zA-Z\-%._:]*"
_ADDRESS = re.compile(rf"(?:\[({_HOST})\]|({_HOST})):([0-9]+)")
_EVERY_INTERFACE = {"", "0.0.0.0", "0:0:0:0:0:0:0:0"}  # noqa: S104  # recognised, not bound


def split_address(text: str) -> tuple[str, int]:
    """Split `host:port`; the host, which may be empty, loses its brackets.

    As in Apache Kafka, IPv6 without brackets ends at the last colon. Raises ValueError in words.
    """
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not host:port, with IPv6 in brackets")
    bracketed, host, port = match.groups()
    if int(port) > HIGHEST_PORT:
        raise ValueError(f"{port} is no port: the highest is {HIGHEST_PORT}")
    return bracketed or host or "", int(port)


def join_address(host: str, port: int | str) -> str:
    """Write `host:port`, with IPv6 in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def java_address(host: str) -> str:
    """Return an address as Java writes it, with IPv6 in full; a name is returned unchanged.

    >>> java_address("127.0.0.1"), java_address("::1%lo"), java_address("::ffff:10.0.0.1")
    ('127.0.0.1', '0:0:0:0:0:0:0:1%lo', '10.0.0.1')
    """
    if ":" not in host:
        return host
    try:
        address = IPv6Address(host)
    except ValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    zone = f"%{address.scope_id}" if address.scope_id else ""
    return ":".join(f"{group:x}" for group in struct.unpack("!8H", address.packed)) + zone


def peer_address(peer: tuple[Any, ...]) -> str:
    """Return the address of (host, port, …), as sockets have it, in Java's writing."""
    zone = peer[3] if len(peer) > 3 else 0  # noqa: PLR2004  # IPv6 has four parts
    return java_address(f"{peer[0]}%{zone}" if zone else peer[0])


def counted_address(host: str) -> str:
    """Return the address by which limits count: as in Java, addresses of all zones are equal."""
    return java_address(host).partition("%")[0]


def is_every_interface(host: str) -> bool:
    """Return whether listening on this host is listening on every interface."""
    return java_address(host) in _EVERY_INTERFACE
