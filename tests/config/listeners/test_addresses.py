"""Addresses as they are written, split, joined, and as Java shows them."""

from __future__ import annotations

import pytest

from config.listeners.addresses import (
    counted_address,
    is_every_interface,
    java_address,
    join_address,
    peer_address,
    split_address,
)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:9092", "127.0.0.1", 9092),
        ("[::1]:9092", "::1", 9092),
        ("[::1%lo]:9092", "::1%lo", 9092),
        ("[fe80::1%1]:9092", "fe80::1%1", 9092),
        ("[fe80::1%eth0.100]:9092", "fe80::1%eth0.100", 9092),
        ("[fe80::1%br-lan_2]:9092", "fe80::1%br-lan_2", 9092),
        ("[::ffff:127.0.0.1]:9092", "::ffff:127.0.0.1", 9092),
        ("[FE80::ABCD]:9092", "FE80::ABCD", 9092),
        ("[::]:9092", "::", 9092),
        ("::1:9092", "::1", 9092),
        ("[localhost]:9092", "localhost", 9092),
        ("[]:9092", "", 9092),
        (":9092", "", 9092),
        ("host.:0", "host.", 0),
        ("ho_st:65535", "ho_st", 65535),
    ],
)
def test_addresses_that_apache_kafka_splits_are_split_alike(
    text: str, host: str, port: int
) -> None:
    assert split_address(text) == (host, port)


@pytest.mark.parametrize(
    "text",
    [
        *("", "localhost", "localhost:", "localhost:x", "localhost: 1", " localhost:1", "[::1]"),
        *("[::1:9092", "::1]:9092", "[::1]x:9092", "[fe80::1%en@x]:1", "user@host:1", "a/b:1"),
        *("bücher:1", "localhost:٣"),
    ],
)
def test_texts_of_another_form_are_refused_as_they_were_written(text: str) -> None:
    with pytest.raises(ValueError, match="is not host:port, with IPv6 in brackets") as refused:
        split_address(text)
    assert str(refused.value).startswith(repr(text))


def test_port_above_the_highest_is_refused() -> None:
    with pytest.raises(ValueError, match="65536 is no port: the highest is 65535"):
        split_address("localhost:65536")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1", "fe80::1%eth0", ""])
def test_joined_addresses_split_into_what_they_were_made_of(host: str) -> None:
    assert split_address(join_address(host, 9092)) == (host, 9092)


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("::1%lo", "0:0:0:0:0:0:0:1%lo"),
        ("2001:DB8::a:0:b", "2001:db8:0:0:0:a:0:b"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("::FFFF:0a00:1", "10.0.0.1"),
        ("::10.0.0.1", "0:0:0:0:0:0:a00:1"),
        ("localhost", "localhost"),
        ("gggg::1", "gggg::1"),
        ("", ""),
    ],
)
def test_addresses_are_written_as_java_writes_them(host: str, shown: str) -> None:
    assert java_address(host) == shown


@pytest.mark.parametrize(
    ("peer", "shown", "counted"),
    [
        (("127.0.0.1", 1), "127.0.0.1", "127.0.0.1"),
        (("::1", 1, 0, 0), "0:0:0:0:0:0:0:1", "0:0:0:0:0:0:0:1"),
        (("::ffff:10.0.0.1", 1, 0, 0), "10.0.0.1", "10.0.0.1"),
        (("fe80::1", 1, 0, 4), "fe80:0:0:0:0:0:0:1%4", "fe80:0:0:0:0:0:0:1"),
    ],
)
def test_peer_has_its_zone_by_number_and_is_counted_without(
    peer: tuple[str | int, ...], shown: str, counted: str
) -> None:
    assert peer_address(peer) == shown
    assert counted_address(shown) == counted


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::", "0:0:0:0:0:0:0:0", "::ffff:0.0.0.0"])
def test_every_interface_has_many_writings(host: str) -> None:
    assert is_every_interface(host)
    assert not is_every_interface(f"1{host}")
