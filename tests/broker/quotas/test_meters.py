"""Usage of clients, kept for a bounded number of them."""

from __future__ import annotations

from broker.quotas.meters import LONGEST_KEPT, Meters
from controller.security.config_entities import DEFAULT, ConfigEntity

MOST = 100


def counters(most: int = MOST) -> Meters[list[str]]:
    return Meters(list, most)


def test_nothing_is_kept_while_no_limit_is_set() -> None:
    meters = counters()

    assert meters.of("alice", "loader") is None
    assert not meters.is_enabled
    assert len(meters) == 0


def test_client_finds_what_it_has_used() -> None:
    meters = counters()
    meters.set(ConfigEntity("alice"), 10)
    first = meters.of("alice", "one")
    assert first is not None
    first.meter.append("used")

    assert meters.of("alice", "two") == (["used"], 10)
    assert not meters.of("bob", "one")


def test_limit_changes_while_the_use_stays() -> None:
    meters = counters()
    meters.set(ConfigEntity("alice"), 10)
    first = meters.of("alice", "")
    assert first is not None
    first.meter.append("used")

    meters.set(ConfigEntity("alice"), 20)

    assert meters.of("alice", "") == (["used"], 20)


def test_strangers_with_many_client_ids_take_no_more_memory() -> None:
    meters = counters(3)
    meters.set(ConfigEntity(client_id=DEFAULT), 10)
    for name in ("a", "b", "c"):
        metered = meters.of("alice", name)
        assert metered is not None
        metered.meter.append(name)

    meters.of("alice", "a")
    meters.of("alice", "d")

    assert len(meters) == 3
    assert meters.of("alice", "a") == (["a"], 10)
    assert meters.of("alice", "b") == ([], 10), "unused for longest, so forgotten"


def test_removing_the_last_limit_drops_all_usage() -> None:
    meters = counters()
    meters.set(ConfigEntity("alice"), 10)
    meters.of("alice", "")

    meters.set(ConfigEntity("alice"), None)

    assert not meters.is_enabled
    assert len(meters) == 0


def test_long_client_ids_are_distinguished_but_not_stored() -> None:
    meters = counters()
    meters.set(ConfigEntity(client_id=DEFAULT), 10)
    long = "x" * 32_000
    first = meters.of("alice", f"{long}1")
    assert first is not None
    first.meter.append("used")

    assert meters.of("alice", f"{long}1") == (["used"], 10)
    assert meters.of("alice", f"{long}2") == ([], 10)
    assert max(len(share.client_id) for share in meters._meters) <= LONGEST_KEPT
