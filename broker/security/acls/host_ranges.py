"""Hosts of access control entries that are ranges of addresses, as 10.0.0.0/8 (KIP-1276)."""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import (
    AddressValueError,
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
)
from typing import Final

_IPV4: Final = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})/(\d{1,2})", re.ASCII)
_PREFIX: Final = re.compile(r"\d{1,9}", re.ASCII)
MOST_KEPT: Final = 1000
"""Ranges that are parsed once only."""

Network = IPv4Network | IPv6Network


def is_range(host: str) -> bool:
    """Return whether an entry's host is written as a range."""
    return "/" in host


def range_of(text: str) -> Network:
    """Return the addresses of a range. Raises ValueError, in the words of Apache Kafka."""
    return _ipv6(text) if ":" in text else _ipv4(text)


def is_within(host: str, text: str) -> bool:
    """Return whether an address is in a range; False for an invalid range."""
    network = _known(text)
    try:
        address = ip_address(host)
    except ValueError:
        return False
    if isinstance(address, IPv4Address):
        return isinstance(network, IPv4Network) and bool(int(address)) and address in network
    return isinstance(network, IPv6Network) and address in network


@lru_cache(MOST_KEPT)
def _known(text: str) -> Network | None:
    try:
        return range_of(text)
    except ValueError:
        return None


def _ipv4(text: str) -> IPv4Network:
    found = _IPV4.fullmatch(text)
    if found is None:
        raise ValueError(f"Could not parse [{text}]")
    *octets, bits = map(int, found.groups())
    for value, most in (*((octet, 255) for octet in octets), (bits, 32)):
        if value > most:
            raise ValueError(f"Value [{value}] not in range [0,{most}]")
    return IPv4Network((bytes(octets), bits), strict=False)


def _ipv6(text: str) -> IPv6Network:
    address, slash, bits = text.rpartition("/")
    if not slash:
        raise ValueError(f"Could not parse [{text}] - missing prefix length")
    if _PREFIX.fullmatch(bits) is None:
        raise ValueError(f"Could not parse [{text}] - invalid prefix length")
    if int(bits) > 128:  # noqa: PLR2004 - the bits of an address
        raise ValueError(f"Could not parse [{text}] - prefix length must be between 0 and 128")
    try:
        return IPv6Network((IPv6Address(address).packed, int(bits)), strict=False)
    except AddressValueError:
        raise ValueError(f"Could not parse [{address}]") from None
