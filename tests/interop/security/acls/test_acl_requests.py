"""Drawn requests about ACLs are answered by our broker as by both of Apache Kafka's authorizers."""

from __future__ import annotations

import random
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from config.checks import ACL_AUTHORIZER, STANDARD_AUTHORIZER
from protocol.acl_types import AclOperation, PatternType, PermissionType, ResourceType
from protocol.headers import request_front, response_header_bytes
from protocol.messages.acls import (
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
)
from tests.interop.conftest import eventually
from tests.support.brokers.apache import ZooKeeperCluster, apache_4
from tests.support.brokers.ours import ours
from tests.support.wire import ConnectionClosedError, RawConnection

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from protocol.schema import Request

pytestmark = pytest.mark.slow

SEED = 20_14
REQUESTS = 400
CLOSED = "the connection was closed"
LATER = 99
"""A word of a later version."""

NAMES = ["orders", "ord", "o", "*", "payments", "p*", "größe"]
ODD_NAMES = ["", "kafka-cluster"]
PRINCIPALS = ["User:alice", "User:*", "User:bob", "Group:alice"]
ODD_PRINCIPALS = ["alice", ""]
HOSTS = ["*", "127.0.0.1", "10.0.0.1"]

Answer = Any


def everyone_is_super(authorizer: str) -> dict[str, str]:
    return {"authorizer.class.name": authorizer, "super.users": "User:ANONYMOUS"}


class Pair:
    """Two brokers of which the same is asked."""

    def __init__(self, apache: int, own: int) -> None:
        """The ports of both."""
        self._ports = (apache, own)

    def answers(self, request: Request, version: int) -> tuple[Answer, Answer]:
        apache, own = (ask(port, request, version) for port in self._ports)
        return apache, own


def ask(port: int, request: Request, version: int) -> Answer:
    """The answer without its order, which is that of Java's hashes."""
    cls = type(request)
    key = int(cls.API_KEY)
    with RawConnection.open(port) as wire:
        body = request.encode(version)
        wire.send(request_front(7, key, version, b"raw", len(body)) + body)
        try:
            received = wire.receive()
        except ConnectionClosedError:
            return CLOSED
    response: Any = cls.RESPONSE.decode(version, received, response_header_bytes(key, version))
    if isinstance(request, CreateAclsRequest):
        return [(one.error_code, one.error_message) for one in response.results]
    if isinstance(request, DescribeAclsRequest):
        return (response.error_code, response.error_message, sorted(entries(response.resources)))
    return [
        (
            one.error_code,
            one.error_message,
            sorted(
                (acl.error_code, *names_of(acl), acl.principal, acl.host, acl.operation)
                for acl in one.matching_acls
            ),
        )
        for one in response.filter_results
    ]


def names_of(resource: Any) -> tuple[Any, ...]:
    return (resource.resource_type, resource.resource_name, resource.pattern_type)


def entries(resources: Any) -> Iterator[tuple[Any, ...]]:
    for resource in resources:
        for acl in resource.acls:
            entry = (acl.principal, acl.host, acl.operation, acl.permission_type)
            yield (*names_of(resource), *entry)


class Draw:
    """Requests by the seed; most of them usual ones."""

    def __init__(self, seed: int, versions: range) -> None:
        self._chance = random.Random(seed)
        self._versions = versions

    def request(self) -> tuple[Request, int]:
        version = self._chance.choice(self._versions)
        count = self._chance.choice([0, 1, 1, 2, 3])
        kind = self._chance.choice(["create", "create", "describe", "delete"])
        if kind == "create":
            return CreateAclsRequest(creations=[self._creation() for _ in range(count)]), version
        if kind == "describe":
            return DescribeAclsRequest(**self._filter()), version
        filters = [DeleteAclsRequest.Filter(**self._filter(1)) for _ in range(count)]
        return DeleteAclsRequest(filters=filters), version

    def _creation(self) -> CreateAclsRequest.Creation:
        one = self._chance
        odd = one.random() < 0.05
        kinds = [PatternType.LITERAL, PatternType.PREFIXED]
        return CreateAclsRequest.Creation(
            resource_type=self._word(ResourceType, 0.03),
            resource_name=one.choice(ODD_NAMES if odd else NAMES),
            resource_pattern_type=one.choice(kinds) if one.random() < 0.98 else one.choice([1, 2]),
            principal=one.choice(PRINCIPALS * 8 + ODD_PRINCIPALS),
            host=one.choice(HOSTS),
            operation=self._word(AclOperation, 0.03),
            permission_type=self._word(PermissionType, 0.02),
        )

    def _filter(self, definite: int = 0) -> dict[str, Any]:
        one = self._chance
        return {
            "resource_type_filter": self._word(ResourceType, 0.4, 1),
            "resource_name_filter": one.choice(NAMES) if definite else one.choice([None, *NAMES]),
            "pattern_type_filter": one.choice([1, 2, 3, 4] * 9 + [0, LATER]),
            "principal_filter": one.choice([None, None, *PRINCIPALS]),
            "host_filter": one.choice([None, None, *HOSTS]),
            "operation": self._word(AclOperation, 0.5, 1),
            "permission_type": self._word(PermissionType, 0.5, 1),
        }

    def _word(self, words: Any, odd: float, usual_odd: int | None = None) -> int:
        one = self._chance
        if one.random() >= odd:
            return int(one.choice([word for word in words if word > 1 and word != 15]))
        if usual_odd is not None and one.random() < 0.95:
            return usual_odd
        return one.choice([0, 1, LATER])


def compare(pair: Pair, versions: range) -> None:
    draw = Draw(SEED, versions)
    different = []
    for number in range(REQUESTS):
        request, version = draw.request()
        apache, own = pair.answers(request, version)
        if apache != own and isinstance(request, DescribeAclsRequest):
            eventually(lambda: len(set(map(str, pair.answers(request, version)))) == 1, 10)  # noqa: B023
        elif apache != own:
            different.append(f"{number} v{version} {request}\n  Apache {apache}\n  ours   {own}")
    assert different == []


@pytest.mark.slow
@pytest.mark.java
def test_requests_are_answered_as_by_acl_authorizer(tmp_path: Path) -> None:
    properties = everyone_is_super(ACL_AUTHORIZER)
    apache = ZooKeeperCluster(tmp_path / "apache", properties)
    own = ours(tmp_path / "ours", properties)
    with ExitStack() as stack:
        stack.callback(apache.kill)
        stack.callback(own.kill)
        own.start()
        apache.start()
        compare(Pair(apache.broker.port, own.port), range(4))


@pytest.mark.java
def test_requests_are_answered_as_by_standard_authorizer(tmp_path: Path) -> None:
    properties = everyone_is_super(STANDARD_AUTHORIZER)
    apache, own = apache_4(tmp_path / "apache", properties), ours(tmp_path / "ours", properties)
    with ExitStack() as stack:
        stack.callback(apache.kill)
        stack.callback(own.kill)
        own.start()
        apache.start()
        compare(Pair(apache.port, own.port), range(1, 4))
