"""Quotas are set, described and removed by entity; errors are Apache Kafka's."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from protocol.errors import ErrorCode
from protocol.messages.client_quotas import AlterClientQuotasRequest, DescribeClientQuotasRequest
from tests.broker.handlers.one_broker import OneBroker, run_broker

if TYPE_CHECKING:
    from pathlib import Path

    from protocol.acl_types import AclOperation, ResourceType

Entry = AlterClientQuotasRequest.Entry
INVALID = ErrorCode.INVALID_REQUEST
PRODUCE, FETCH = "producer_byte_rate", "consumer_byte_rate"
REQUEST, CONNECTIONS = "request_percentage", "connection_creation_rate"
EXACT, OF_DEFAULT, ANY = 0, 1, 2
DEFAULT = None
USER, CLIENT_ID, IP = "user", "client-id", "ip"


def entry(parts: list[tuple[str, str | None]], *changes: tuple[str, float | None]) -> Entry:
    return Entry(
        entity=[Entry.Entity(entity_type=kind, entity_name=name) for kind, name in parts],
        ops=[Entry.Op(key=key, value=value or 0.0, remove=value is None) for key, value in changes],
    )


def alice(*changes: tuple[str, float | None]) -> Entry:
    return entry([(USER, "alice")], *changes)


async def alter(broker: OneBroker, *entries: Entry, validate_only: bool = False) -> list[int]:
    request = AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)
    response = await broker.ask(request, 1)
    return [one.error_code for one in response.entries]


async def describe(
    broker: OneBroker, *components: tuple[str, int, str | None], strict: bool = False
) -> Any:
    """Quotas by entity, or the error."""
    request = DescribeClientQuotasRequest(
        components=[
            DescribeClientQuotasRequest.Component(entity_type=kind, match_type=how, match=name)
            for kind, how, name in components
        ],
        strict=strict,
    )
    response = await broker.ask(request, 1)
    if response.error_code:
        assert response.entries is None
        return response.error_code
    return {
        tuple((part.entity_type, part.entity_name) for part in one.entity): {
            value.key: value.value for value in one.values
        }
        for one in response.entries
    }


def test_quotas_hold_as_soon_as_their_setting_is_answered(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        assert await alter(broker, alice((PRODUCE, 1024), (REQUEST, 50.5))) == [ErrorCode.NONE]
        quotas = broker.services.quotas
        produce = quotas.produce.of("alice", "x")
        assert produce is not None
        assert produce.limit == 1024
        assert await describe(broker) == {((USER, "alice"),): {PRODUCE: 1024, REQUEST: 50.5}}
        node = await broker.store.get("/config/users/alice")
        expected = (
            b'{"version":1,"config":{"producer_byte_rate":"1024","request_percentage":"50.5"}}'
        )
        assert node.data == expected

        assert await alter(broker, alice((PRODUCE, None))) == [ErrorCode.NONE]
        assert await describe(broker) == {((USER, "alice"),): {REQUEST: 50.5}}
        assert await alter(broker, alice((REQUEST, None))) == [ErrorCode.NONE]
        assert await describe(broker) == {}
        assert await broker.store.children("/config/users") == []

    run_broker(tmp_path, scenario)


def test_nodes_are_those_of_apache_kafka(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await alter(broker, entry([(USER, "a b"), (CLIENT_ID, "x/y")], (FETCH, 1)))
        await alter(broker, entry([(USER, DEFAULT), (CLIENT_ID, DEFAULT)], (FETCH, 2)))
        await alter(broker, entry([(IP, "10.1.2.3")], (CONNECTIONS, 10)))

        found = {
            path: (await broker.store.get(path)).data
            for path in (
                "/config/users/a%20b/clients/x%2Fy",
                "/config/users/<default>/clients/<default>",
                "/config/ips/10.1.2.3",
            )
        }
        assert list(found.values()) == [
            b'{"version":1,"config":{"consumer_byte_rate":"1"}}',
            b'{"version":1,"config":{"consumer_byte_rate":"2"}}',
            b'{"version":1,"config":{"connection_creation_rate":"10"}}',
        ]

    run_broker(tmp_path, scenario)


@pytest.mark.parametrize(
    "wrong",
    [
        entry([], (PRODUCE, 1)),
        entry([(USER, "")], (PRODUCE, 1)),
        entry([("group", "g")], (PRODUCE, 1)),
        entry([(USER, "u"), (IP, "1.2.3.4")], (CONNECTIONS, 1)),
        entry([(IP, "x" * 70)], (CONNECTIONS, 1)),
        entry([(IP, "1.2.3.4")], (PRODUCE, 1)),
        alice((CONNECTIONS, 1)),
        alice(("nonsense", 1)),
        alice((PRODUCE, -1)),
        alice((REQUEST, math.inf)),
        alice((REQUEST, math.nan)),
        entry([(USER, "alice")], (PRODUCE, 1.5)),
        alice((PRODUCE, 1e19)),
        alice(("request_percentage", float("inf"))),
        alice(("request_percentage", float("nan"))),
        alice((PRODUCE, 1), (PRODUCE, 2)),
    ],
)
def test_an_invalid_quota_is_refused_and_the_others_altered(wrong: Entry, tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        right = entry([(USER, "bob")], (PRODUCE, 1))

        assert await alter(broker, wrong, right) == [INVALID, ErrorCode.NONE]

        assert list(await describe(broker)) == [((USER, "bob"),)]

    run_broker(tmp_path, scenario)


def test_an_entity_named_twice_is_answered_once(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        assert await alter(broker, alice((PRODUCE, 1)), alice((PRODUCE, 2))) == [INVALID]
        assert await describe(broker) == {((USER, "alice"),): {PRODUCE: 1}}

    run_broker(tmp_path, scenario)


def test_alteration_that_is_only_tried_changes_nothing(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        assert await alter(broker, alice((PRODUCE, 1)), validate_only=True) == [ErrorCode.NONE]
        assert await alter(broker, alice((PRODUCE, 0)), validate_only=True) == [INVALID]
        assert await describe(broker) == {}

    run_broker(tmp_path, scenario)


ENTITIES: list[list[tuple[str, str | None]]] = [
    [(USER, "alice")],
    [(USER, DEFAULT)],
    [(USER, "alice"), (CLIENT_ID, "x")],
    [(USER, "alice"), (CLIENT_ID, DEFAULT)],
    [(CLIENT_ID, "x")],
]


@pytest.mark.parametrize(
    ("components", "strict", "found"),
    [
        ([], False, [0, 1, 2, 3, 4]),
        ([], True, []),
        ([(USER, EXACT, "alice")], False, [0, 2, 3]),
        ([(USER, EXACT, "alice")], True, [0]),
        ([(USER, OF_DEFAULT, None)], False, [1]),
        ([(USER, ANY, None)], True, [0, 1]),
        ([(CLIENT_ID, ANY, None)], False, [2, 3, 4]),
        ([(CLIENT_ID, ANY, None)], True, [4]),
        ([(USER, ANY, None), (CLIENT_ID, OF_DEFAULT, None)], False, [3]),
        ([(USER, EXACT, "bob")], False, []),
        ([(IP, ANY, None)], False, []),
    ],
)
def test_filter_finds_entities_with_the_parts_it_names(
    components: list[tuple[str, int, str | None]], strict: bool, found: list[int], tmp_path: Path
) -> None:
    async def scenario(broker: OneBroker) -> None:
        await alter(broker, *[entry(parts, (PRODUCE, 1)) for parts in ENTITIES])

        described = await describe(broker, *components, strict=strict)

        assert sorted(ENTITIES.index(list(parts)) for parts in described) == found

    run_broker(tmp_path, scenario)


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("", EXACT, "x")], INVALID),
        ([(USER, EXACT, "a"), (USER, ANY, None)], INVALID),
        ([(USER, 3, None)], INVALID),
        ([(USER, EXACT, None)], INVALID),
        ([(USER, OF_DEFAULT, "a")], INVALID),
        ([(USER, ANY, "a")], INVALID),
        ([(USER, ANY, None), (IP, ANY, None)], INVALID),
        ([("group", ANY, None)], ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_filter_that_makes_no_sense_is_refused(
    components: list[tuple[str, int, str | None]], code: ErrorCode, tmp_path: Path
) -> None:
    async def scenario(broker: OneBroker) -> None:
        assert await describe(broker, *components) == code

    run_broker(tmp_path, scenario)


class OnlyReaders:
    """Authorizer that allows describing, and no changes."""

    def allows(
        self, principal: str, host: str, operation: AclOperation, kind: ResourceType, name: str
    ) -> bool:
        return "DESCRIBE" in operation.name

    would_allow = allows

    def allows_any(
        self, principal: str, host: str, operation: AclOperation, kind: ResourceType
    ) -> bool:
        return False


def test_missing_alter_configs_is_answered_for_each_entity(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        broker.services.authorizer = OnlyReaders()

        assert await alter(broker, alice((PRODUCE, 1))) == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
        assert await describe(broker) == {}

    run_broker(tmp_path, scenario)
