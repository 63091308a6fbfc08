"""Links log in at Apache Kafka's brokers as at ours, again and again on one connection."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from broker.network.authentication.link_login import SaslLogin
from broker.network.broker_link import BrokerLink, LinkLimits
from broker.network.links import LinkError, LinkSecurity
from broker.runtime.clock import SystemClock
from broker.security.sasl.client.mechanisms import client_mechanism
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.broker.security.sasl.stated_config import stated
from tests.support.security.listeners import MECHANISMS, login_modules
from tests.support.security.realm import ADMIN, PASSWORDS
from tests.support.security.secured_brokers import APACHE_4, OURS, secured_broker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.security.realm import Realm
    from tests.support.security.secured_brokers import SecuredBroker

pytestmark = [pytest.mark.interop, pytest.mark.java]

LIFETIME_MS = 1500
TIMES = 3
WITH_PASSWORD = [name for name in MECHANISMS if name != "OAUTHBEARER"]
TIMEOUT_MS = 60_000
MOST_BYTES = 1 << 20


@pytest.fixture(scope="module", params=[OURS, APACHE_4])
def other(
    request: pytest.FixtureRequest, realm: Realm, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredBroker]:
    """A broker whose sessions end soon."""
    keys = {"connections.max.reauth.ms": str(LIFETIME_MS)}
    broker = secured_broker(request.param, tmp_path_factory.mktemp("other"), realm, keys)
    try:
        broker.start()
        yield broker
    finally:
        broker.process.kill()


def link_to(other: SecuredBroker, mechanism: str, password: str) -> BrokerLink:
    """Make a link as the broker does, by its configuration."""
    module = login_modules()[mechanism].replace(PASSWORDS[ADMIN], password)
    config = stated(
        {
            "sasl.enabled.mechanisms": mechanism,
            "sasl.mechanism.inter.broker.protocol": mechanism,
            f"listener.name.internal.{mechanism.lower()}.sasl.jaas.config": module,
        }
    )

    async def on_thread(work: Callable[[], bytes]) -> bytes:
        return await asyncio.to_thread(work)

    login = SaslLogin(client_mechanism(config, "INTERNAL", {}, on_thread, SystemClock()))
    address = ("localhost", other.ports.sasl_plaintext)
    limits = LinkLimits(TIMEOUT_MS, MOST_BYTES)
    return BrokerLink("the other", lambda: address, "link", limits, LinkSecurity(login=login))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_link_outlives_its_sessions(other: SecuredBroker, mechanism: str) -> None:
    async def scenario() -> None:
        link = link_to(other, mechanism, PASSWORDS[ADMIN])
        for _ in range(TIMES):
            answer = await link.ask(MetadataRequest(topics=[]), 9)
            assert isinstance(answer, MetadataResponse)
            await asyncio.sleep(LIFETIME_MS / 1000)  # noqa: TID251
        link.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("mechanism", WITH_PASSWORD)
def test_a_link_with_the_wrong_password_is_refused(other: SecuredBroker, mechanism: str) -> None:
    async def scenario() -> None:
        with pytest.raises(LinkError, match=rf"SASL {mechanism}: Authentication failed") as raised:
            await link_to(other, mechanism, "mistyped").ask(MetadataRequest(topics=[]), 9)
        assert "mistyped" not in str(raised.value)

    asyncio.run(scenario())
