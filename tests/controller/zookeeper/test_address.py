"""Reading `zookeeper.connect`."""

from __future__ import annotations

import pytest

from controller.zookeeper.address import AddressError, parse_address


def test_list_of_servers_with_a_path() -> None:
    address = parse_address("one:2181, two ,[::1]:99/kafka/a/")
    assert address.servers == (("one", 2181), ("two", 2181), ("::1", 99))
    assert address.root == "/kafka/a"
    assert address.root_steps() == ["/kafka", "/kafka/a"]
    assert address.full("/brokers") == "/kafka/a/brokers"
    assert address.full("/") == "/kafka/a"
    assert address.own("/kafka/a/brokers") == "/brokers"


@pytest.mark.parametrize(
    ("text", "servers"),
    [
        ("[::1]", [("::1", 2181)]),
        ("[::1%lo]:99,[fe80::1%2]/kafka", [("::1%lo", 99), ("fe80::1%2", 2181)]),
        ("::1:99", [("::1", 99)]),
        ("[::FFFF:127.0.0.1]:2181", [("::FFFF:127.0.0.1", 2181)]),
        ("[host]:1,ho_st,host.:2", [("host", 1), ("ho_st", 2181), ("host.", 2)]),
    ],
)
def test_servers_are_read_as_zookeepers_client_reads_them(
    text: str, servers: list[tuple[str, int]]
) -> None:
    address = parse_address(text)
    assert address.servers == tuple(servers)
    assert parse_address(str(address)) == address


@pytest.mark.parametrize("text", ["one:2181", "one:2181/"])
def test_whole_tree_is_used_without_a_path(text: str) -> None:
    address = parse_address(text)
    assert (address.root, address.root_steps()) == ("", [])
    assert (address.full("/"), address.full("/a"), address.own("/a")) == ("/", "/a", "/a")


@pytest.mark.parametrize(
    "text",
    [
        *("", "/kafka", "one:x", "one:0", "one:70000", ":2181", "one//a"),
        *("[::1", "[::1]x", "[::1]:", "[]:1", "::1", "gggg::1:2181", "a:b:1"),
    ],
)
def test_an_invalid_zookeeper_connect_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(AddressError, match=r"zookeeper\.connect"):
        parse_address(text)
