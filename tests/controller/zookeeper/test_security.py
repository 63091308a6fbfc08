"""Access lists of znodes."""

from __future__ import annotations

import pytest
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from controller.zookeeper.security import DigestLogin, ZooKeeperSecurity, acl_of

SENSITIVE = [
    "/config/users",
    "/config/users/alice",
    "/config/brokers/0",
    "/delegation_token/tokens",
]


@pytest.mark.parametrize("path", ["/brokers/ids/0", "/config/users/alice", "/consumers"])
def test_without_set_acl_every_znode_is_open(path: str) -> None:
    assert acl_of(path, sets_acl=False) == OPEN_ACL_UNSAFE


@pytest.mark.parametrize("path", ["/brokers/ids/0", "/config/topics/a", "/delegation_token"])
def test_znodes_belong_to_their_creator_and_are_readable_by_all(path: str) -> None:
    assert acl_of(path, sets_acl=True) == [*CREATOR_ALL_ACL, *READ_ACL_UNSAFE]


@pytest.mark.parametrize("path", SENSITIVE)
def test_znodes_with_secrets_are_readable_by_their_creator_only(path: str) -> None:
    assert acl_of(path, sets_acl=True) == CREATOR_ALL_ACL


def test_consumers_of_long_ago_keep_their_path() -> None:
    assert acl_of("/consumers", sets_acl=True) == OPEN_ACL_UNSAFE
    assert acl_of("/consumers/group", sets_acl=True) != OPEN_ACL_UNSAFE


def test_the_password_is_hidden_in_str_and_repr() -> None:
    security = ZooKeeperSecurity(login=DigestLogin("kafka", "hidden"), sets_acl=True)
    assert "hidden" not in f"{security} {security!r}"
