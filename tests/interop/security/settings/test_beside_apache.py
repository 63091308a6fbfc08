"""Settings of listeners and SCRAM users are answered as Apache Kafka answers them."""

from __future__ import annotations

import contextlib
import operator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from protocol.errors import ErrorCode
from protocol.headers import request_front, response_header_bytes
from protocol.messages.configs import (
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.scram import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from tests.interop.conftest import eventually
from tests.support import jars
from tests.support.brokers.apache import ZooKeeperCluster, apache_4
from tests.support.brokers.ours import ours
from tests.support.wire import RawConnection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from protocol.schema import Request
    from tests.support.brokers.broker_process import BrokerProcess

pytestmark = [pytest.mark.java, pytest.mark.slow]

BROKER_TYPE = 4
AGREED_SECONDS = 30.0
SET, DELETE = 0, 1
PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_a="b";'
KEYS = {
    "password.encoder.secret": "of the cluster",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.plaintext.ssl.keystore.location": "/static",
    "listener.name.plaintext.plain.sasl.jaas.config": PLAIN,
    "listener.name.plaintext.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.internal.ssl.client.auth": "required",
    "my.plugin": "x",
}

Upsertion = AlterUserScramCredentialsRequest.Upsertion
Deletion = AlterUserScramCredentialsRequest.Deletion


def set_(name: str, mechanism: int = 1, iterations: int = 4096) -> Upsertion:
    return Upsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=b"s", salted_password=bytes(32)
    )


def delete(name: str, mechanism: int = 1) -> Deletion:
    return Deletion(name=name, mechanism=mechanism)


SCRAM_STEPS: list[list[Upsertion | Deletion]] = [
    [set_("alice"), set_("bob", 2, 16384), set_("żółw,=", 1, 5000)],
    [set_("alice", 1, 4095)],
    [set_("alice", 2, 16385), set_("carol")],
    [set_("", 1)],
    [delete("")],
    [set_("alice", 0)],
    [set_("alice", 9)],
    [delete("alice", 9)],
    [delete("alice", 2)],
    [delete("nobody")],
    [delete("alice"), set_("alice", 1)],
    [set_("alice"), set_("alice", 1, 5000)],
    [delete("alice"), delete("alice")],
    [set_("alice", 1, 100), set_("alice", 1, 100)],
    [delete("bob", 2), set_("alice", 1, 9000)],
]
DESCRIPTIONS = [[], ["alice"], ["bob"], ["alice", "nobody", "alice"]]

SETTINGS: list[tuple[str, str, int, str | None]] = [
    ("0", "sasl.enabled.mechanisms", SET, "PLAIN,SCRAM-SHA-256"),
    ("0", "ssl.keystore.location", SET, "/x"),
    ("", "listener.name.external.ssl.keystore.location", SET, "/x"),
    ("0", "listener.name.external.ssl.keystore.location", SET, "/x"),
    ("0", "listener.name.external.ssl.keystore.password", SET, "sesame"),
    ("0", "listener.name.external.ssl.client.auth", SET, "required"),
    ("0", "listener.name.external.ssl.client.auth", SET, "perhaps"),
    ("0", "listener.name.external.scram-sha-256.sasl.jaas.config", SET, PLAIN),
    ("0", "listener.name.plaintext.ssl.client.auth", SET, "required"),
    ("0", "listener.name.plaintext.plain.sasl.jaas.config", SET, "other"),
    ("0", "listener.name.plaintext.my.plugin", SET, "y"),
    ("", "sasl.enabled.mechanisms", SET, "PLAIN"),
    ("0", "ssl.principal.mapping.rules", SET, "DEFAULT"),
    ("0", "listener.name.external.ssl.keystore.location", DELETE, None),
]


def ask(port: int, request: Request, version: int) -> Any:
    """The decoded answer to one request on a connection of its own."""
    cls = type(request)
    key = int(cls.API_KEY)
    with RawConnection.open(port) as wire:
        body = request.encode(version)
        wire.send(request_front(7, key, version, b"raw", len(body)) + body)
        return cls.RESPONSE.decode(version, wire.receive(), response_header_bytes(key, version))


class Pair(NamedTuple):
    """Two brokers of which the same is asked."""

    apache: BrokerProcess
    own: BrokerProcess

    def answers(self, request: Any, version: int, said: Callable[[Any], Any]) -> tuple[Any, Any]:
        """Return both brokers' answers, as `said` reads them."""
        apache, own = (said(ask(one.port, request, version)) for one in self)
        return apache, own

    def agree(self, answers: Callable[[], tuple[Any, Any]]) -> None:
        """Give Apache's broker the moment in which it learns of its own changes."""
        with contextlib.suppress(AssertionError):
            eventually(lambda: operator.eq(*answers()), AGREED_SECONDS)
        apache, own = answers()
        assert own == apache


@pytest.fixture(scope="module", params=[jars.KAFKA_3, jars.KAFKA_4])
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    directory: Path = tmp_path_factory.mktemp("beside")
    with ExitStack() as stack:
        own = ours(directory / "ours", KEYS)
        stack.callback(own.kill)
        own.start()
        if request.param == jars.KAFKA_4:
            apache = apache_4(directory / "apache", KEYS)
            stack.callback(apache.kill)
            apache.start()
        else:
            cluster = ZooKeeperCluster(directory / "apache", KEYS)
            stack.callback(cluster.kill)
            cluster.start()
            apache = cluster.broker
        yield Pair(apache, own)


def altered(response: AlterUserScramCredentialsResponse) -> dict[str, tuple[int, str | None]]:
    return {one.user: (one.error_code, one.error_message or None) for one in response.results}


def described(response: DescribeUserScramCredentialsResponse) -> dict[str, Any]:
    assert response.error_code == ErrorCode.NONE
    return {
        one.user: (
            one.error_code,
            one.error_message or None,
            sorted((info.mechanism, info.iterations) for info in one.credential_infos),
        )
        for one in response.results
    }


def test_scram_users_are_altered_and_described_the_same(pair: Pair) -> None:
    for step in SCRAM_STEPS:
        request = AlterUserScramCredentialsRequest(
            upsertions=[one for one in step if isinstance(one, Upsertion)],
            deletions=[one for one in step if isinstance(one, Deletion)],
        )
        apache, own = pair.answers(request, 0, altered)
        assert own == apache, step
    for names in DESCRIPTIONS:
        users = [DescribeUserScramCredentialsRequest.User(name=name) for name in names]
        request_of_all = DescribeUserScramCredentialsRequest(users=users)
        pair.agree(lambda: pair.answers(request_of_all, 0, described))  # noqa: B023


def setting(name: str, change: tuple[str, int, str | None]) -> IncrementalAlterConfigsRequest:
    resource = IncrementalAlterConfigsRequest.Resource
    key, operation, value = change
    config = resource.Config(name=key, config_operation=operation, value=value)
    return IncrementalAlterConfigsRequest(
        resources=[resource(resource_type=BROKER_TYPE, resource_name=name, configs=[config])],
        validate_only=False,
    )


def settings_of_listeners(response: Any) -> dict[str, Any]:
    return {
        one.name: (
            *(one.value, one.read_only, one.config_source, one.is_sensitive, one.config_type),
            [(synonym.name, synonym.value, synonym.source) for synonym in one.synonyms],
        )
        for one in response.results[0].configs
        if one.name.startswith(("listener.name.", "my.", "sasl.enabled"))
    }


def code(response: Any) -> ErrorCode:
    return ErrorCode(response.responses[0].error_code)


@pytest.mark.parametrize("name", ["0", ""])
def test_settings_of_listeners_are_taken_and_described_the_same(pair: Pair, name: str) -> None:
    for to, key, operation, value in SETTINGS:
        if to == name:
            apache, own = pair.answers(setting(to, (key, operation, value)), 1, code)
            assert own == apache, key
    resource = DescribeConfigsRequest.Resource(
        resource_type=BROKER_TYPE, resource_name=name, configuration_keys=None
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    pair.agree(lambda: pair.answers(request, 4, settings_of_listeners))
