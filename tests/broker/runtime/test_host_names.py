"""Addresses of hosts."""

from __future__ import annotations

import asyncio

import pytest

from broker.runtime.host_names import address_of, is_address


@pytest.mark.parametrize("host", ["10.0.0.1", "::1", "fe80::1"])
def test_address_is_its_own(host: str) -> None:
    assert is_address(host)
    assert asyncio.run(address_of(host)) == host


@pytest.mark.parametrize("host", ["localhost", "10.0.0", "", "x y"])
def test_name_is_no_address(host: str) -> None:
    assert not is_address(host)


def test_host_has_an_address() -> None:
    assert asyncio.run(address_of("localhost")) in ("127.0.0.1", "::1")


def test_name_that_cannot_be_has_none() -> None:
    assert asyncio.run(address_of("x" * 70)) is None
