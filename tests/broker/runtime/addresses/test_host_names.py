"""Addresses of hosts."""

from __future__ import annotations

import asyncio
import socket

import pytest

from broker.runtime.addresses.host_names import address_of, is_address, system_host


@pytest.mark.parametrize(
    ("host", "counted"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("fe80::1", "fe80:0:0:0:0:0:0:1"),
        ("fe80::1%1", "fe80:0:0:0:0:0:0:1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
    ],
)
def test_an_address_is_normalised_as_limits_count_it(host: str, counted: str) -> None:
    assert is_address(host)
    assert asyncio.run(address_of(host)) == counted


@pytest.mark.parametrize(
    ("host", "known"),
    [
        ("localhost", "localhost"),
        ("127.1", "127.1"),
        ("::1%7", "0:0:0:0:0:0:0:1%7"),
        ("[::1]", "0:0:0:0:0:0:0:1"),
        ("::ffff:127.0.0.1", "127.0.0.1"),
    ],
)
def test_hosts_are_resolved_in_the_form_java_accepts(host: str, known: str) -> None:
    assert system_host(host) == known


def test_zone_is_the_number_of_its_interface() -> None:
    number, name = socket.if_nameindex()[0]
    assert system_host(f"::1%{name}") == f"0:0:0:0:0:0:0:1%{number}"
    assert system_host(f"[fe80::2%{name}]") == f"fe80:0:0:0:0:0:0:2%{number}"


def test_interface_that_is_not_there_is_named() -> None:
    with pytest.raises(OSError, match="there is no interface nosuch0"):
        system_host("::1%nosuch0")
    assert asyncio.run(address_of("::1%nosuch0")) is None


@pytest.mark.parametrize("host", ["localhost", "10.0.0", "", "x y"])
def test_name_is_no_address(host: str) -> None:
    assert not is_address(host)


def test_host_has_an_address() -> None:
    assert asyncio.run(address_of("localhost")) in ("127.0.0.1", "0:0:0:0:0:0:0:1")


def test_an_invalid_host_name_has_no_address() -> None:
    assert asyncio.run(address_of("x" * 70)) is None
    assert asyncio.run(address_of("a\0b")) is None
