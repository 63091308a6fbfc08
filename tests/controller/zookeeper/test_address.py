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


@pytest.mark.parametrize("text", ["one:2181", "one:2181/"])
def test_whole_tree_is_used_without_a_path(text: str) -> None:
    address = parse_address(text)
    assert (address.root, address.root_steps()) == ("", [])
    assert (address.full("/"), address.full("/a"), address.own("/a")) == ("/", "/a", "/a")


@pytest.mark.parametrize("text", ["", "/kafka", "one:x", "one:0", "one:70000", ":2181", "one//a"])
def test_what_cannot_be_read_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(AddressError, match=r"zookeeper\.connect"):
        parse_address(text)
