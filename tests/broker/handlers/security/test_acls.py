"""DescribeAcls, CreateAcls and DeleteAcls, through encoding and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from broker.runtime.deferred import HangUp
from broker.security.acls.acl_filter import AclFilter
from config.checks import ACL_AUTHORIZER, STANDARD_AUTHORIZER
from protocol.acl_types import AclOperation, PatternType, PermissionType, ResourceType
from protocol.errors import ErrorCode
from protocol.messages.acls import (
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
)
from tests.broker.handlers.one_broker import OneBroker, run_broker

if TYPE_CHECKING:
    from pathlib import Path

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ANY, LATER = 1, 99
BOTH = pytest.mark.parametrize("authorizer", [ACL_AUTHORIZER, STANDARD_AUTHORIZER])
VERSIONS = pytest.mark.parametrize("version", range(4))
SUPER = {"super_users": "User:A"}
"""Tests ask as this user."""


def acl(name: str = "orders", principal: str = "User:alice", **fields: Any) -> Any:
    values: dict[str, Any] = {
        "resource_type": TOPIC,
        "resource_name": name,
        "principal": principal,
        "host": "*",
        "operation": AclOperation.READ,
        "permission_type": PermissionType.ALLOW,
    }
    return CreateAclsRequest.Creation(**(values | fields))


def wanted(**fields: Any) -> dict[str, Any]:
    anything = {
        "resource_type_filter": ANY,
        "resource_name_filter": None,
        "pattern_type_filter": ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
    }
    return anything | fields


async def create(broker: OneBroker, *creations: Any, version: int = 3) -> list[ErrorCode]:
    response = await broker.ask(CreateAclsRequest(creations=list(creations)), version)
    return [ErrorCode(result.error_code) for result in response.results]


async def described(broker: OneBroker, version: int = 3, **fields: Any) -> list[tuple[str, str]]:
    response = await broker.ask(DescribeAclsRequest(**wanted(**fields)), version)
    assert response.error_code == ErrorCode.NONE
    return [
        (resource.resource_name, one.principal)
        for resource in response.resources
        for one in resource.acls
    ]


async def deleted(broker: OneBroker, *filters: Any, version: int = 3) -> list[list[str]]:
    request = DeleteAclsRequest(filters=[DeleteAclsRequest.Filter(**one) for one in filters])
    response = await broker.ask(request, version)
    assert all(result.error_code == ErrorCode.NONE for result in response.filter_results)
    return [
        [one.resource_name for one in result.matching_acls] for result in response.filter_results
    ]


@BOTH
@VERSIONS
def test_created_acls_are_enforced_described_and_deleted(
    tmp_path: Path, authorizer: str, version: int
) -> None:
    async def scenario(broker: OneBroker) -> None:
        alice = ("User:alice", "/10.0.0.1", AclOperation.DESCRIBE, TOPIC, "orders")
        decider = broker.services.authorizer
        assert decider is not None
        assert not decider.allows(*alice)
        assert await create(broker, acl(), acl("payments"), acl(), version=version) == [0] * 3
        assert decider.allows(*alice)
        only_literal = {} if version else {"pattern_type_filter": LITERAL}
        both = [("orders", "User:alice"), ("payments", "User:alice")]
        assert await described(broker, version, **only_literal) == both
        named = wanted(resource_name_filter="orders", **only_literal)
        assert await deleted(broker, named, version=version) == [["orders"]]
        assert await described(broker, version, **only_literal) == both[1:]
        assert not decider.allows(*alice)

    run_broker(tmp_path, scenario, authorizer_class_name=authorizer, **SUPER)


def test_pattern_type_match_describes_all_acls_that_cover_a_resource(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        prefix = acl("ord", "User:p", resource_pattern_type=PREFIXED)
        await create(broker, acl("*", "User:w"), acl(), prefix, acl("payments"))
        match: dict[str, Any] = {
            "pattern_type_filter": PatternType.MATCH,
            "resource_name_filter": "orders",
        }
        found = await described(broker, **match)
        assert sorted(found) == [("*", "User:w"), ("ord", "User:p"), ("orders", "User:alice")]
        assert await described(broker, principal_filter="User:p") == [("ord", "User:p")]
        assert await described(broker, operation=AclOperation.WRITE) == []
        assert await described(broker, resource_type_filter=LATER) == []

    run_broker(tmp_path, scenario, authorizer_class_name=STANDARD_AUTHORIZER, **SUPER)


@pytest.mark.parametrize(
    ("authorizer", "expected"),
    [(ACL_AUTHORIZER, [["orders"], []]), (STANDARD_AUTHORIZER, [["orders"], ["orders"]])],
)
def test_an_acl_matched_by_two_filters_is_deleted_once(
    tmp_path: Path, authorizer: str, expected: list[list[str]]
) -> None:
    async def scenario(broker: OneBroker) -> None:
        await create(broker, acl())
        everything = wanted()
        assert await deleted(broker, everything, everything) == expected
        assert await described(broker) == []

    run_broker(tmp_path, scenario, authorizer_class_name=authorizer, **SUPER)


REFUSED = [
    (acl("other", resource_type=CLUSTER), "The only valid name for the CLUSTER resource"),
    (acl(""), "Invalid empty resource name"),
    (acl("a/b"), "Resource name cannot be stored"),
    (acl(principal="alice"), "Could not parse principal"),
    (acl(resource_type=LATER), "Invalid resourceType UNKNOWN"),
    (acl(operation=LATER), "Invalid operation UNKNOWN"),
    (acl(permission_type=LATER), "Invalid permissionType UNKNOWN"),
    (acl(resource_pattern_type=LATER), "Invalid patternType UNKNOWN"),
]


@pytest.mark.parametrize(("creation", "why"), REFUSED)
@BOTH
def test_an_invalid_acl_is_refused_and_the_others_created(
    tmp_path: Path, creation: Any, why: str, authorizer: str
) -> None:
    async def scenario(broker: OneBroker) -> None:
        request = CreateAclsRequest(creations=[acl("a"), creation, acl("b")])
        response = await broker.ask(request, 3)
        codes = [result.error_code for result in response.results]
        is_parsed = authorizer == STANDARD_AUTHORIZER or creation.principal != "alice"
        code = ErrorCode.INVALID_REQUEST if is_parsed else ErrorCode.UNKNOWN_SERVER_ERROR
        assert codes == [ErrorCode.NONE, code, ErrorCode.NONE]
        is_told = authorizer == STANDARD_AUTHORIZER or creation.resource_name in ("", "other")
        message = response.results[1].error_message or "Failed to create"
        assert message.startswith(why if is_told else "Failed to create")
        assert len(await described(broker)) == 2

    run_broker(tmp_path, scenario, authorizer_class_name=authorizer, **SUPER)


@pytest.mark.parametrize(
    "field", ["resource_type", "resource_pattern_type", "operation", "permission_type"]
)
def test_acls_with_filter_only_values_cannot_be_created(tmp_path: Path, field: str) -> None:
    async def scenario(broker: OneBroker) -> None:
        words: dict[str, Any] = {field: ANY}
        codes = await create(broker, acl("a"), acl("b", **words))
        assert codes == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
        assert await described(broker) == []

    run_broker(tmp_path, scenario, authorizer_class_name=STANDARD_AUTHORIZER, **SUPER)


def test_a_request_with_unknown_elements_ends_the_connection(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        unknown = DeleteAclsRequest.Filter(**wanted(operation=0))
        for request in (
            CreateAclsRequest(creations=[acl(operation=0)]),
            DescribeAclsRequest(**wanted(resource_type_filter=0)),
            DeleteAclsRequest(filters=[unknown]),
        ):
            with pytest.raises(HangUp):
                await broker.ask(request, 3)

    run_broker(tmp_path, scenario, authorizer_class_name=STANDARD_AUTHORIZER)


async def errors_of_all(broker: OneBroker) -> set[ErrorCode]:
    filters = [DeleteAclsRequest.Filter(**wanted())]
    answers = [
        (await broker.ask(CreateAclsRequest(creations=[acl()]), 3)).results[0],
        (await broker.ask(DeleteAclsRequest(filters=filters), 3)).filter_results[0],
        await broker.ask(DescribeAclsRequest(**wanted()), 3),
    ]
    return {ErrorCode(answer.error_code) for answer in answers}


def test_acl_requests_answer_security_disabled_without_an_authorizer(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        assert await errors_of_all(broker) == {ErrorCode.SECURITY_DISABLED}

    run_broker(tmp_path, scenario)


@BOTH
def test_acl_requests_need_rights_on_the_cluster(tmp_path: Path, authorizer: str) -> None:
    async def scenario(broker: OneBroker) -> None:
        assert await errors_of_all(broker) == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}

    run_broker(tmp_path, scenario, authorizer_class_name=authorizer)


@pytest.mark.parametrize(
    ("field", "message"),
    [("resource_type_filter", "Unknown patternFilter."), ("operation", "Unknown entryFilter.")],
)
def test_a_filter_with_words_of_later_versions_is_refused_or_matches_nothing(
    tmp_path: Path, field: str, message: str
) -> None:
    filters = [DeleteAclsRequest.Filter(**wanted(**{field: LATER}))]

    async def refused(broker: OneBroker) -> None:
        answer = await broker.ask(DeleteAclsRequest(filters=filters), 3)
        result = answer.filter_results[0]
        assert result.error_code == ErrorCode.INVALID_REQUEST
        assert result.error_message == message

    async def matching_nothing(broker: OneBroker) -> None:
        await create(broker, acl())
        assert await deleted(broker, wanted(**{field: LATER})) == [[]]

    run_broker(tmp_path / "1", refused, authorizer_class_name=STANDARD_AUTHORIZER, **SUPER)
    run_broker(tmp_path / "2", matching_nothing, authorizer_class_name=ACL_AUTHORIZER, **SUPER)


def test_an_unavailable_store_answers_request_timed_out(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        broker.store.breaks_at = lambda path: path.startswith("/kafka-acl")
        broker.store.is_away = True
        assert await create(broker, acl()) == [ErrorCode.REQUEST_TIMED_OUT]
        named = wanted(resource_type_filter=TOPIC, resource_name_filter="orders")
        request = DeleteAclsRequest(filters=[DeleteAclsRequest.Filter(**named)])
        answer = await broker.ask(request, 3)
        assert answer.filter_results[0].error_code == ErrorCode.REQUEST_TIMED_OUT
        broker.store.breaks_at = lambda _: False
        broker.store.come_back()

    run_broker(tmp_path, scenario, authorizer_class_name=STANDARD_AUTHORIZER, **SUPER)


def test_deletions_above_the_limit_are_refused_as_a_whole(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await create(broker, acl(), acl(principal="User:bob"), acl("payments"))
        named = DeleteAclsRequest.Filter(**wanted(resource_name_filter="orders"))
        response = await broker.ask(DeleteAclsRequest(filters=[named] * 3), 3)
        codes = [(one.error_code, len(one.matching_acls)) for one in response.filter_results]
        assert codes == [(ErrorCode.INVALID_REQUEST, 0)] * 3
        assert "more than 5 acls" in response.filter_results[0].error_message
        assert len(await described(broker)) == 3
        assert await deleted(broker, wanted()) == [["orders", "orders", "payments"]]

    keys = {"authorizer_class_name": STANDARD_AUTHORIZER, "authorizer_max_deletions_per_request": 5}
    run_broker(tmp_path, scenario, **keys, **SUPER)


@BOTH
def test_a_filter_that_comes_again_costs_no_look_at_each_entry(
    tmp_path: Path, authorizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(AclFilter, "matches_entry", lambda *one: asked.append(one))

    async def scenario(broker: OneBroker) -> None:
        await create(broker, *(acl(principal=f"User:{number}") for number in range(20)))
        many = [wanted(resource_name_filter="orders")] * 20
        first, *others = await deleted(broker, *many)
        assert first == ["orders"] * 20
        assert others == [first if authorizer == STANDARD_AUTHORIZER else []] * 19
        assert asked == []

    run_broker(tmp_path, scenario, authorizer_class_name=authorizer, **SUPER)


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ("10.0.0.0/8", ErrorCode.NONE),
        ("2001:db8::/32", ErrorCode.NONE),
        ("10.0.0.0/33", ErrorCode.INVALID_REQUEST),
        ("fe80::/129", ErrorCode.INVALID_REQUEST),
        ("", ErrorCode.INVALID_REQUEST),
    ],
)
def test_host_that_is_no_range_is_refused_by_standard_authorizer(
    host: str, code: ErrorCode, tmp_path: Path
) -> None:
    async def scenario(broker: OneBroker) -> None:
        assert await create(broker, acl(host=host)) == [code]

    run_broker(tmp_path, scenario, authorizer_class_name=STANDARD_AUTHORIZER, **SUPER)
