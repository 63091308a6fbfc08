"""Eight levels of limits, and who shares one."""

from __future__ import annotations

import pytest

from broker.quotas.limits import Limits, Share
from controller.security.config_entities import DEFAULT, ConfigEntity

LEVELS = (
    ConfigEntity("alice", "loader"),
    ConfigEntity("alice", DEFAULT),
    ConfigEntity("alice"),
    ConfigEntity(DEFAULT, "loader"),
    ConfigEntity(DEFAULT, DEFAULT),
    ConfigEntity(DEFAULT),
    ConfigEntity(client_id="loader"),
    ConfigEntity(client_id=DEFAULT),
)
BOTH, USER, CLIENT = Share("alice", "loader"), Share("alice", ""), Share("", "loader")
SHARES = (BOTH, BOTH, USER, BOTH, BOTH, USER, CLIENT, CLIENT)


@pytest.mark.parametrize("level", range(len(LEVELS)))
def test_most_specific_limit_holds(level: int) -> None:
    limits = Limits()
    for number, entity in enumerate(LEVELS[level:], level):
        limits.set(entity, number)

    share = limits.share_of("alice", "loader")

    assert share == SHARES[level]
    assert limits.limit_of(share) == level


def test_without_limits_there_is_none() -> None:
    limits = Limits()
    assert not limits
    assert limits.limit_of(limits.share_of("alice", "loader")) is None


def test_clients_of_a_user_with_a_limit_share_it() -> None:
    limits = Limits()
    limits.set(ConfigEntity("alice"), 1)

    assert limits.share_of("alice", "one") == limits.share_of("alice", "two")
    assert limits.share_of("alice", "one") != limits.share_of("bob", "one")


def test_each_client_id_has_a_default_for_itself() -> None:
    limits = Limits()
    limits.set(ConfigEntity("alice", DEFAULT), 1)

    assert limits.share_of("alice", "one") != limits.share_of("alice", "two")


def test_users_with_the_same_client_id_share_its_limit() -> None:
    limits = Limits()
    limits.set(ConfigEntity(client_id="loader"), 1)

    assert limits.share_of("alice", "loader") == limits.share_of("bob", "loader")


def test_no_default_is_for_a_client_without_client_id() -> None:
    limits = Limits()
    limits.set(ConfigEntity(client_id=DEFAULT), 1)
    assert limits.limit_of(limits.share_of("alice", "")) is None

    limits.set(ConfigEntity(DEFAULT, DEFAULT), 2)
    limits.set(ConfigEntity(DEFAULT), 3)
    assert limits.limit_of(limits.share_of("alice", "")) == 3


def test_limit_that_is_removed_makes_room_for_the_next() -> None:
    limits = Limits()
    limits.set(ConfigEntity("alice"), 1)
    limits.set(ConfigEntity(client_id=DEFAULT), 2)

    assert limits.set(ConfigEntity("alice"), None)
    assert not limits.set(ConfigEntity("alice"), None)

    assert limits.limit_of(limits.share_of("alice", "loader")) == 2
