"""Limits that are configured while the broker runs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from broker.quotas.client_quotas import ClientQuotas
from broker.quotas.quota_keys import QuotaKey
from config.broker import BrokerConfig
from controller.security.config_entities import ConfigEntity

if TYPE_CHECKING:
    from collections.abc import Coroutine


class Background:
    """Work that a test does when it wants."""

    def __init__(self) -> None:
        self.work: list[Coroutine[Any, Any, None]] = []

    def __call__(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self.work.append(work)

    async def finish(self) -> None:
        for work in self.work:
            await work
        self.work.clear()


@pytest.fixture
def background() -> Background:
    return Background()


@pytest.fixture
def quotas(background: Background) -> ClientQuotas:
    return ClientQuotas(BrokerConfig(), background)


def limits_connections(quotas: ClientQuotas) -> bool:
    return quotas.connections.is_enabled


def change(quotas: ClientQuotas, entity_type: str, entity: str, **values: str) -> None:
    asyncio.run(quotas.changed(entity_type, entity, values))


def test_each_quota_key_sets_its_own_limit(quotas: ClientQuotas) -> None:
    change(
        quotas,
        "users",
        "al%2Fice",
        producer_byte_rate="1024",
        consumer_byte_rate="2048",
        request_percentage="50.5",
        controller_mutation_rate="1.5",
    )

    assert quotas.is_enabled
    limits = [
        metered.limit
        for meters in (quotas.produce, quotas.fetch, quotas.request, quotas.mutation)
        if (metered := meters.of("al/ice", "any")) is not None
    ]
    assert limits == [1024, 2048, 50.5, 1.5]


def test_quota_that_is_removed_holds_no_more(quotas: ClientQuotas) -> None:
    change(quotas, "clients", "<default>", producer_byte_rate="1024", consumer_byte_rate="1")

    change(quotas, "clients", "<default>", consumer_byte_rate="1")
    assert quotas.produce.of("alice", "x") is None
    assert quotas.fetch.of("alice", "x") is not None

    change(quotas, "clients", "<default>")
    assert not quotas.is_enabled
    assert quotas.entities == {}


def test_credentials_beside_quotas_are_no_concern(quotas: ClientQuotas) -> None:
    change(quotas, "users", "alice", **{"SCRAM-SHA-256": "salt=…"})
    change(quotas, "topics", "alice", producer_byte_rate="1")

    assert quotas.entities == {}
    assert not quotas.is_enabled


@pytest.mark.parametrize("text", ["0", "-1", "NaN", "Infinity"])
def test_value_that_cannot_be_kept_to_is_shown_and_has_no_effect(
    quotas: ClientQuotas, text: str
) -> None:
    change(quotas, "users", "alice", producer_byte_rate=text)

    assert quotas.produce.of("alice", "x") is None
    assert set(quotas.entities) == {ConfigEntity("alice")}


def test_a_quota_that_is_no_number_is_logged_and_ignored(
    quotas: ClientQuotas, caplog: pytest.LogCaptureFixture
) -> None:
    change(quotas, "users", "alice", producer_byte_rate="fast")

    assert quotas.entities == {}
    assert "quota ignored: producer_byte_rate" in caplog.text


def test_connections_of_addresses_are_limited(quotas: ClientQuotas) -> None:
    change(quotas, "ips", "10.0.0.1", connection_creation_rate="1")

    assert limits_connections(quotas)
    assert not quotas.is_enabled, "no request looks at it"
    assert quotas.entities[ConfigEntity(ip="10.0.0.1")] == {QuotaKey.CONNECTION_CREATION_RATE: 1}

    change(quotas, "ips", "10.0.0.1")
    assert not limits_connections(quotas)


@pytest.mark.parametrize(
    ("written", "counted"),
    [
        ("::1", "0:0:0:0:0:0:0:1"),
        ("0:0::1%1", "0:0:0:0:0:0:0:1"),
        ("::FFFF:10.0.0.1", "10.0.0.1"),
    ],
)
def test_limit_of_an_address_holds_for_all_its_writings(
    quotas: ClientQuotas, written: str, counted: str
) -> None:
    change(quotas, "ips", written, connection_creation_rate="1")

    rests = [quotas.connections.throttle_ms(counted, now_ms=1) for _ in range(30)]

    assert rests[0] == 0
    assert rests[-1] > 0, "it was found under the address that a connection has"


def test_host_is_looked_up_in_the_background(quotas: ClientQuotas, background: Background) -> None:
    async def scenario() -> None:
        await quotas.changed("ips", "localhost", {"connection_creation_rate": "1"})
        assert not limits_connections(quotas)
        await background.finish()
        assert limits_connections(quotas)
        await quotas.changed("ips", "localhost", {})
        assert not limits_connections(quotas)

    asyncio.run(scenario())


def test_host_whose_quota_has_gone_meanwhile_has_none(
    quotas: ClientQuotas, background: Background
) -> None:
    async def scenario() -> None:
        await quotas.changed("ips", "localhost", {"connection_creation_rate": "1"})
        await quotas.changed("ips", "localhost", {})
        await background.finish()
        assert not limits_connections(quotas)

    asyncio.run(scenario())


def test_an_unresolvable_host_is_logged(
    quotas: ClientQuotas, background: Background, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        await quotas.changed("ips", "x" * 70, {"connection_creation_rate": "1"})
        await background.finish()

    asyncio.run(scenario())
    assert "no address is known for" in caplog.text
    assert not limits_connections(quotas)
