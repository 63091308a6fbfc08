"""ZooKeeper goes while ACLs change: what was decided holds, changes are refused, then caught up."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from kazoo.client import KazooClient

from config.checks import ACL_AUTHORIZER
from controller.security.acl_znodes import acl_path, encode_acl, encode_acl_change
from protocol.acl_types import (
    AccessControlEntry,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)
from protocol.errors import ErrorCode
from tests.interop.conftest import eventually
from tests.interop.security.acls.test_acl_requests import ask, everyone_is_super
from tests.interop.security.acls.test_acl_tools import acl, described
from tests.support.brokers.ours import ours
from tests.support.brokers.zookeeper import ZooKeeperServer

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

LITERAL = PatternType.LITERAL
SESSION_MS = 4000


@pytest.mark.java
def test_changes_are_refused_while_zookeeper_is_away_and_heard_of_again_when_it_is_back(
    tmp_path: Path,
) -> None:
    server = ZooKeeperServer(tmp_path / "zookeeper")
    properties = everyone_is_super(ACL_AUTHORIZER) | {
        "zookeeper.connect": server.address,
        "zookeeper.session.timeout.ms": str(SESSION_MS),
    }
    own = ours(tmp_path / "ours", properties)
    with ExitStack() as stack:
        stack.callback(server.kill)
        stack.callback(own.kill)
        server.start()
        own.start()
        assert ask(own.port, acl("before", LITERAL), 3) == [(0, "")]
        before = described(own.port)

        server.kill()
        ((code, message),) = ask(own.port, acl("meanwhile", LITERAL), 3)
        assert code == ErrorCode.REQUEST_TIMED_OUT
        assert message
        assert described(own.port) == before

        server.start()
        eventually(lambda: ask(own.port, acl("after", LITERAL), 3) == [(0, "")])
        names = [entry[1] for entry in described(own.port)[2]]
        assert sorted(names) == ["after", "before"]
        change_as_another_broker(server, "theirs")
        eventually(lambda: "theirs" in str(described(own.port)))


def change_as_another_broker(server: ZooKeeperServer, name: str) -> None:
    """Write a list and its notification, one after the other as Apache Kafka does."""
    pattern = ResourcePattern(ResourceType.TOPIC, name)
    entry = AccessControlEntry("User:x", "*", AclOperation.READ, PermissionType.ALLOW)
    client = KazooClient(server.address)
    client.start()
    try:
        client.create(acl_path(pattern), encode_acl([entry]))
        notification = encode_acl_change(pattern)
        client.create("/kafka-acl-changes/acl_changes_", notification, sequence=True)
    finally:
        client.stop()
        client.close()
