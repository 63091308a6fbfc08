"""Brokers of both makes with the same users, and access control lists that a test sets.

Who comes to PLAINTEXT is a super user there: the test itself. Users come to SASL_PLAINTEXT.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from protocol.acl_types import AclOperation, PatternType, PermissionType, ResourceType
from protocol.errors import ErrorCode
from protocol.messages.acls import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.groups import DescribeGroupsRequest
from protocol.messages.metadata import MetadataRequest
from protocol.messages.producer_ids import InitProducerIdRequest
from protocol.messages.producers import DescribeTransactionsRequest
from protocol.messages.topics import CreateTopicsRequest, DeleteTopicsRequest
from protocol.uuids import ZERO_UUID
from tests.interop.security.principals import Principal
from tests.support.brokers.broker_process import free_port
from tests.support.sent_requests.about import About
from tests.support.sent_requests.group_requests import offset_commit
from tests.support.sent_requests.outcomes import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from uuid import UUID

    from protocol.schema import Request
    from tests.support.brokers.broker_process import BrokerProcess

USERS = ("alice", "bob", "carol")
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ACL = "kafka.security.authorizer.AclAuthorizer"
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SETTLED_SECONDS = 60.0
POLL_SECONDS = 0.02
NOT_YET = {
    *(ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR),
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}
INTERNAL = {"__consumer_offsets", "__transaction_state"}

Entry = tuple[int, str, int, str, str, int, int]
"""Resource type, name, pattern type, principal, host, operation, permission."""


def secured(port: int, sasl_port: int, authorizer: str) -> dict[str, str]:
    """The keys of a broker of any make."""
    users = " ".join(f'user_{name}="{name}"' for name in USERS)
    return {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{sasl_port}",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{LOGIN} required {users};",
        "authorizer.class.name": authorizer,
        "super.users": "User:ANONYMOUS",
        "log.retention.ms": "-1",
        "offsets.topic.num.partitions": "3",
        "transaction.state.log.num.partitions": "3",
    }


class Contestant:
    """A running broker, its users, and who may do everything there."""

    def __init__(self, process: BrokerProcess, sasl_port: int) -> None:
        self.process = process
        self.admin = Principal(process.port)
        self.users = {name: Principal(sasl_port, name) for name in USERS}

    @classmethod
    def of(
        cls,
        make: Callable[[int, dict[str, str]], BrokerProcess],
        authorizer: str = STANDARD,
    ) -> Contestant:
        """Make a broker of a port and properties; it is not started yet."""
        port, sasl_port = free_port(), free_port()
        return cls(make(port, secured(port, sasl_port, authorizer)), sasl_port)

    def close(self) -> None:
        """End it at once."""
        for one in (self.admin, *self.users.values()):
            one.close()
        self.process.kill()

    def topics(self) -> dict[str, UUID]:
        """Return the existing topics that have leaders, with their ids."""
        answer = self.admin.ask(MetadataRequest(topics=None, allow_auto_topic_creation=False), 12)
        return {
            topic.name: topic.topic_id
            for topic in answer.topics
            if topic.partitions and not any(each.error_code for each in topic.partitions)
        }

    def settle_topics(self, wanted: set[str]) -> None:
        """Make exactly these topics exist, besides the internal ones."""
        have = set(self.topics()) - INTERNAL
        missing, surplus = sorted(wanted - have), sorted(have - wanted)
        if surplus:
            kind = DeleteTopicsRequest.Topic
            topics = [kind(name=name, topic_id=ZERO_UUID) for name in surplus]
            self.admin.ask(DeleteTopicsRequest(topics=topics, timeout_ms=30_000), 6)
        if missing:
            new = CreateTopicsRequest.Topic
            named = [
                new(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[])
                for name in missing
            ]
            self.admin.ask(CreateTopicsRequest(topics=named, timeout_ms=30_000), 7)
        self._until(lambda: set(self.topics()) - INTERNAL == wanted, f"topics {wanted}")

    def find_coordinators(self, groups: Iterable[str], transactions: Iterable[str]) -> None:
        """Create the internal topics, and wait until their coordinators have loaded them."""
        for key_type, keys in enumerate((groups, transactions)):
            request = FindCoordinatorRequest(coordinator_keys=list(keys), key_type=key_type)

            def is_found(request: FindCoordinatorRequest = request) -> bool:
                found = self.admin.ask(request, 4).coordinators
                return not any(one.error_code for one in found)

            self._until(is_found, f"coordinators of {keys}")
        of_groups = DescribeGroupsRequest(groups=list(groups))
        self._until(lambda: self._is_loaded(of_groups, 4), "loaded groups")
        of_transactions = DescribeTransactionsRequest(transactional_ids=list(transactions))
        self._until(lambda: self._is_loaded(of_transactions, 0), "loaded transactions")
        an_id = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        self._until(lambda: self._is_loaded(an_id, 0), "producer ids")

    def commit(self, topic: str, groups: Iterable[str]) -> None:
        """Commit an offset of each group."""
        for group in groups:
            answer = self.admin.ask(offset_commit(About((topic,), group, ""), 8), 8)
            assert errors(answer) == set(), answer

    def _is_loaded(self, request: Request, version: int) -> bool:
        return not errors(self.admin.ask(request, version)) & NOT_YET

    def set_acls(self, entries: set[Entry]) -> None:
        """Make exactly these access control lists effective."""
        have = self._acls()
        if have - entries:
            filters = [_filter_of(entry) for entry in sorted(have - entries)]
            self.admin.ask(DeleteAclsRequest(filters=filters), 3)
        if entries - have:
            creations = [_creation_of(entry) for entry in sorted(entries - have)]
            told = self.admin.ask(CreateAclsRequest(creations=creations), 3)
            assert [one.error_message for one in told.results if one.error_code] == []
        self._until(lambda: self._acls() == entries, f"{len(entries)} access control entries")

    def _acls(self) -> set[Entry]:
        every = DescribeAclsRequest(
            resource_type_filter=ResourceType.ANY,
            resource_name_filter=None,
            pattern_type_filter=PatternType.ANY,
            principal_filter=None,
            host_filter=None,
            operation=AclOperation.ANY,
            permission_type=PermissionType.ANY,
        )
        return {
            (
                *(resource.resource_type, resource.resource_name, resource.pattern_type),
                *(acl.principal, acl.host, acl.operation, acl.permission_type),
            )
            for resource in self.admin.ask(every, 3).resources
            for acl in resource.acls
        }

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + SETTLED_SECONDS
        while not condition():
            assert time.monotonic() < deadline, f"{self.process.name}: never had {what}"
            time.sleep(POLL_SECONDS)


def _filter_of(entry: Entry) -> DeleteAclsRequest.Filter:
    kind, name, pattern, principal, host, operation, permission = entry
    return DeleteAclsRequest.Filter(
        resource_type_filter=kind,
        resource_name_filter=name,
        pattern_type_filter=pattern,
        principal_filter=principal,
        host_filter=host,
        operation=operation,
        permission_type=permission,
    )


def _creation_of(entry: Entry) -> CreateAclsRequest.Creation:
    kind, name, pattern, principal, host, operation, permission = entry
    return CreateAclsRequest.Creation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=pattern,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission,
    )
