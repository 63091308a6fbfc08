"""`kafka-acls` of both versions; ACLs that our broker and Apache's share in one cluster."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from kazoo.client import KazooClient

from config.checks import ACL_AUTHORIZER, STANDARD_AUTHORIZER
from protocol.acl_types import AclOperation, PatternType, PermissionType, ResourceType
from protocol.messages.acls import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest
from tests.interop.conftest import eventually
from tests.interop.security.acls.test_acl_requests import ask, everyone_is_super
from tests.support import jars
from tests.support.brokers.apache import ZooKeeperCluster
from tests.support.brokers.ours import ours
from tests.support.tools import Tools

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from tests.support.brokers.broker_process import BrokerProcess

pytestmark = pytest.mark.slow

ANYTHING: dict[str, Any] = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Return our broker, with an authorizer."""
    properties = everyone_is_super(STANDARD_AUTHORIZER)
    process = ours(tmp_path_factory.mktemp("ours"), properties)
    process.start()
    yield process
    process.kill()


@pytest.mark.java
@pytest.mark.parametrize("version", [jars.KAFKA_3, jars.KAFKA_4])
def test_kafka_acls_adds_lists_and_removes(own: BrokerProcess, version: str) -> None:
    tools = Tools(version)
    server = ("--bootstrap-server", own.bootstrap)
    producing = ("--allow-principal", "User:alice", "--producer", "--topic", "orders")
    consuming = (
        *("--allow-principal", "User:bob", "--consumer", "--topic", "ord", "--group", "g"),
        *("--allow-host", "10.0.0.1", "--resource-pattern-type", "prefixed"),
    )
    denying = ("--deny-principal", "User:eve", "--operation", "All", "--cluster")
    try:
        for acl in (producing, consuming, denying):
            tools.check("acls", *server, "--add", *acl)
        everything = tools.check("acls", *server, "--list").output
        assert everything.count("Current ACLs") == 4
        for operation in ("WRITE", "DESCRIBE", "CREATE"):
            entry = f"principal=User:alice, host=*, operation={operation}, permissionType=ALLOW"
            assert entry in everything
        assert "principal=User:eve, host=*, operation=ALL, permissionType=DENY" in everything
        match = ("--topic", "orders", "--resource-pattern-type", "match")
        matched = tools.check("acls", *server, "--list", *match).output
        assert matched.count("Current ACLs") == 2
        assert "principal=User:bob, host=10.0.0.1, operation=READ, permissionType=ALLOW" in matched
        assert "eve" not in matched
        for acl in (producing, consuming, denying):
            tools.check("acls", *server, "--remove", "--force", *acl)
        assert "Current ACLs" not in tools.check("acls", *server, "--list").output
    finally:
        tools.close()


@pytest.mark.java
def test_kafka_acls_reports_a_missing_authorizer(tmp_path: Path) -> None:
    process, tools = ours(tmp_path), Tools(jars.KAFKA_4)
    process.start()
    try:
        outcome = tools.run("acls", "--bootstrap-server", process.bootstrap, "--list")
        assert "SecurityDisabledException: No Authorizer is configured on the broker" in (
            outcome.output + outcome.errors
        )
    finally:
        process.kill()
        tools.close()


def acl(name: str, kind: PatternType, user: str = "alice") -> CreateAclsRequest:
    creation = CreateAclsRequest.Creation(
        resource_type=ResourceType.TRANSACTIONAL_ID,
        resource_name=name,
        resource_pattern_type=kind,
        principal=f"User:{user}",
        host="*",
        operation=AclOperation.DESCRIBE_CONFIGS,
        permission_type=PermissionType.DENY,
    )
    return CreateAclsRequest(creations=[creation])


def described(port: int) -> Any:
    return ask(port, DescribeAclsRequest(**ANYTHING), 3)


def tree(zookeeper: KazooClient, path: str) -> dict[str, bytes | None]:
    """The nodes below one, with their data."""
    nodes: dict[str, bytes | None] = {}
    for name in zookeeper.get_children(path):
        child = f"{path}/{name}"
        nodes[child] = zookeeper.get(child)[0]
        nodes |= tree(zookeeper, child)
    return nodes


@pytest.mark.java
def test_our_broker_and_apaches_share_their_acls(tmp_path: Path) -> None:
    properties = everyone_is_super(ACL_AUTHORIZER)
    cluster = ZooKeeperCluster(tmp_path / "apache", properties)
    address = f"127.0.0.1:{cluster.zookeeper.port}"
    own = ours(tmp_path / "ours", {**properties, "broker.id": "1", "zookeeper.connect": address})
    zookeeper, tools = KazooClient(address), Tools(jars.KAFKA_3)
    with ExitStack() as stack:
        stack.callback(cluster.kill)
        stack.callback(own.kill)
        stack.callback(tools.close)
        cluster.start()
        own.start()
        zookeeper.start()
        stack.callback(zookeeper.close)
        stack.callback(zookeeper.stop)
        ports = {"apache": cluster.broker.port, "ours": own.port}
        for name, port in ports.items():
            for kind in (PatternType.LITERAL, PatternType.PREFIXED):
                assert ask(port, acl(name, kind), 3) == [(0, "")]
        eventually(lambda: described(ports["ours"]) == described(ports["apache"]))
        assert len(described(ports["ours"])[2]) == 4
        for path in ("/kafka-acl", "/kafka-acl-extended", *CHANGES):
            same_but_for_names(tree(zookeeper, path))

        direct = f"zookeeper.connect={address}"
        adding = ("--add", "--allow-principal", "User:zoe", "--operation", "Read", "--topic", "t")
        tools.check("acls", "--authorizer-properties", direct, *adding)
        eventually(lambda: "User:zoe" in str(described(ports["ours"])))

        nothing: Any = [(0, None, [])]
        filters = [DeleteAclsRequest.Filter(**ANYTHING)]
        assert ask(ports["ours"], DeleteAclsRequest(filters=filters), 3) != nothing
        eventually(lambda: described(ports["apache"]) == (0, "", []))
        assert ask(ports["apache"], DeleteAclsRequest(filters=filters), 3) == nothing
        left = [node for node in tree(zookeeper, "/kafka-acl").values() if node]
        assert left == []


CHANGES = ("/kafka-acl-changes", "/kafka-acl-extended-changes")


def same_but_for_names(nodes: dict[str, bytes | None]) -> None:
    """Assert that what ours has written is what Apache's has, but for the name in it."""
    written = {path: data for path, data in nodes.items() if data}
    own = sorted(data.replace(b"ours", b"apache") for data in written.values())
    of_each = {data: own.count(data) for data in own}
    assert written
    assert set(of_each.values()) == {2}, of_each
    assert all(json.loads(data) for data in own if data.startswith(b"{"))
