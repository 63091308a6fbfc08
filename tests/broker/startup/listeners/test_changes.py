"""What is to be done when `listeners` is altered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.startup.addresses import by_name
from broker.startup.listeners.changes import difference
from config.errors import ConfigError
from config.listeners import Endpoint

NAMES = ("A", "B", "C")
BOUND = st.lists(
    st.builds(Endpoint, st.sampled_from(NAMES), st.just("SSL"), st.just(""), st.integers(1, 2)),
    unique_by=lambda one: one.name,
).map(by_name)


def test_listeners_are_added_removed_and_moved() -> None:
    stays, goes, comes = (Endpoint(name, "SSL", "", 1) for name in ("STAYS", "GOES", "COMES"))
    here, there = (Endpoint("MOVES", "PLAINTEXT", "", port) for port in (2, 3))
    found = difference(by_name([stays, goes, here]), by_name([comes, there, stays]))
    assert found == (("GOES",), ("MOVES",), ("COMES",))


def test_a_listener_that_gets_an_address_of_ipv6_moves() -> None:
    four, six = Endpoint("A", "SSL", "127.0.0.1", 1), Endpoint("A", "SSL", "::1", 1)
    assert difference(by_name([four]), by_name([four, six])).moved == ("A",)
    assert difference(by_name([four, six]), by_name([six, four])) == ((), (), ())


def test_an_open_listener_keeps_its_protocol() -> None:
    plain, tls = (Endpoint("A", protocol, "", 1) for protocol in ("PLAINTEXT", "SSL"))
    with pytest.raises(ConfigError, match=r"cannot be updated for existing listener A"):
        difference(by_name([plain]), by_name([tls]))


@given(BOUND, BOUND)
def test_what_is_done_leads_from_one_to_the_other(
    now: dict[str, tuple[Endpoint, ...]], wanted: dict[str, tuple[Endpoint, ...]]
) -> None:
    gone, moved, new = difference(now, wanted)
    after = {name: some for name, some in now.items() if name not in gone}
    after |= {name: wanted[name] for name in (*moved, *new)}
    assert after == wanted
    assert all(now[name] != wanted[name] for name in moved)
