"""SCRAM credentials are set, described and deleted by user; errors are Apache Kafka's."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from controller.security.config_entities import ConfigEntity
from protocol.errors import ErrorCode
from protocol.messages.scram import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
)
from protocol.scram_types import ScramMechanism, credential_from
from tests.broker.handlers.one_broker import OneBroker, run_broker

if TYPE_CHECKING:
    from pathlib import Path

    from protocol.acl_types import AclOperation, ResourceType

SHA_256, SHA_512 = ScramMechanism
SALTED = hashlib.pbkdf2_hmac("sha256", b"pencil", b"salt", 4096)
UNKNOWN_MECHANISM = 9


def upsertion(
    name: str, mechanism: int = SHA_256, iterations: int = 4096
) -> AlterUserScramCredentialsRequest.Upsertion:
    return AlterUserScramCredentialsRequest.Upsertion(
        name=name,
        mechanism=mechanism,
        iterations=iterations,
        salt=b"salt",
        salted_password=SALTED,
    )


def deletion(name: str, mechanism: int = SHA_256) -> AlterUserScramCredentialsRequest.Deletion:
    return AlterUserScramCredentialsRequest.Deletion(name=name, mechanism=mechanism)


async def alter(broker: OneBroker, *changes: Any) -> dict[str, ErrorCode]:
    deletions = [c for c in changes if isinstance(c, AlterUserScramCredentialsRequest.Deletion)]
    upsertions = [c for c in changes if isinstance(c, AlterUserScramCredentialsRequest.Upsertion)]
    request = AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)
    response = await broker.ask(request, 0)
    assert len({result.user for result in response.results}) == len(response.results)
    return {result.user: ErrorCode(result.error_code) for result in response.results}


async def describe(broker: OneBroker, *names: str) -> dict[str, list[tuple[int, int]] | ErrorCode]:
    users = [DescribeUserScramCredentialsRequest.User(name=name) for name in names]
    response = await broker.ask(DescribeUserScramCredentialsRequest(users=users or None), 0)
    assert response.error_code == ErrorCode.NONE
    return {
        result.user: ErrorCode(result.error_code)
        if result.error_code
        else [(info.mechanism, info.iterations) for info in result.credential_infos]
        for result in response.results
    }


def test_a_credential_is_known_as_soon_as_its_setting_is_answered(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        assert await alter(broker, upsertion("alice"), upsertion("bob")) == {
            "alice": ErrorCode.NONE,
            "bob": ErrorCode.NONE,
        }
        expected = credential_from(SHA_256, SALTED, b"salt", 4096)
        users = broker.services.scram_users
        assert users.credential(SHA_256, "alice") == expected
        await alter(broker, deletion("alice"), upsertion("alice", SHA_512, 8192))
        assert users.credential(SHA_256, "alice") is None
        assert await describe(broker) == {"alice": [(2, 8192)], "bob": [(1, 4096)]}
        await alter(broker, deletion("alice", SHA_512), deletion("bob"))
        assert await describe(broker) == {}
        assert await broker.store.children("/config/users") == []

    run_broker(tmp_path, scenario)


def test_setting_a_credential_leaves_the_users_quotas(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        alice = ConfigEntity(user="alice")
        configs = broker.services.user_configs
        await configs.alter(alice, lambda _: {"producer_byte_rate": "7"})
        await alter(broker, upsertion("alice"))
        assert (await configs.read(alice))["producer_byte_rate"] == "7"
        await alter(broker, deletion("alice"))
        assert await configs.read(alice) == {"producer_byte_rate": "7"}

    run_broker(tmp_path, scenario)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ([upsertion("alice", iterations=4095)], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([upsertion("alice", iterations=16385)], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([upsertion("alice", UNKNOWN_MECHANISM)], ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ([deletion("alice", UNKNOWN_MECHANISM)], ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ([deletion("alice", SHA_512)], ErrorCode.RESOURCE_NOT_FOUND),
        ([deletion("alice", SHA_512), upsertion("alice")], ErrorCode.RESOURCE_NOT_FOUND),
        ([upsertion("alice"), deletion("alice")], ErrorCode.DUPLICATE_RESOURCE),
        ([upsertion("alice"), upsertion("alice")], ErrorCode.DUPLICATE_RESOURCE),
        ([deletion("alice"), deletion("alice")], ErrorCode.DUPLICATE_RESOURCE),
    ],
)
def test_a_refused_change_leaves_its_user_as_she_was_and_costs_no_other(
    tmp_path: Path, changes: list[Any], error: ErrorCode
) -> None:
    async def scenario(broker: OneBroker) -> None:
        await alter(broker, upsertion("alice", iterations=5000))
        answered = await alter(broker, *changes, upsertion("bob"))
        assert answered == {"alice": error, "bob": ErrorCode.NONE}
        assert await describe(broker) == {"alice": [(1, 5000)], "bob": [(1, 4096)]}

    run_broker(tmp_path, scenario)


def test_a_user_without_a_name_has_no_credentials(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        unacceptable = {"": ErrorCode.UNACCEPTABLE_CREDENTIAL}
        assert await alter(broker, upsertion("")) == unacceptable
        assert await alter(broker, deletion("")) == unacceptable
        assert await describe(broker, "", "") == {"": ErrorCode.RESOURCE_NOT_FOUND}

    run_broker(tmp_path, scenario)


def test_users_are_described_by_name_in_the_order_asked_for(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await alter(broker, upsertion("żółw/=,"), upsertion("żółw/=,", SHA_512), upsertion("bob"))
        described = await describe(broker, "żółw/=,", "nobody", "bob", "bob")
        assert list(described.items()) == [
            ("żółw/=,", [(1, 4096), (2, 4096)]),
            ("nobody", ErrorCode.RESOURCE_NOT_FOUND),
            ("bob", ErrorCode.DUPLICATE_RESOURCE),
        ]

    run_broker(tmp_path, scenario)


class OnlyDescribing:
    """Authorizer that allows describing the cluster, and nothing else."""

    def allows(
        self,
        principal: str,
        host: str,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
    ) -> bool:
        return operation.name == "DESCRIBE" and name == "kafka-cluster"

    would_allow = allows

    def allows_any(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        return False


def test_altering_and_describing_are_operations_on_the_cluster(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await alter(broker, upsertion("alice"))
        broker.services.authorizer = OnlyDescribing()
        assert await alter(broker, deletion("alice")) == {
            "alice": ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        }
        assert await describe(broker) == {"alice": [(1, 4096)]}

    run_broker(tmp_path, scenario)


def test_a_failing_store_answers_request_timed_out(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        broker.store.breaks_at = lambda path: path.startswith("/config/users/")
        assert await alter(broker, upsertion("alice")) == {"alice": ErrorCode.REQUEST_TIMED_OUT}
        assert await describe(broker) == {}

    run_broker(tmp_path, scenario)
