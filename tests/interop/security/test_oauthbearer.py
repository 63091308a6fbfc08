"""OAUTHBEARER with tokens that a provider has signed, shown by clients of several makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient
from kafka.net.sasl.oauth import AbstractTokenProvider

from broker.runtime.clock import SystemClock
from tests.broker.security.oauth.provider import jwk, key_set, rsa_key, token
from tests.support import jars
from tests.support.brokers.broker_process import BrokerProcess, free_port
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.interop.conftest import NewBroker
    from tests.support.tools import Outcome, Tools

OAUTH = "org.apache.kafka.common.security.oauthbearer"
AUDIENCE = "kafka"
LIFE_SECONDS = 600


class Guarded(NamedTuple):
    """A broker that believes one provider."""

    broker: BrokerProcess
    port: int


@pytest.fixture(scope="module")
def guarded(new_broker: NewBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """Return a running broker."""
    directory = tmp_path_factory.mktemp("oauthbearer")
    keys_file = directory / "keys.json"
    keys_file.write_text(key_set(jwk(rsa_key(), kid="one", alg="RS256", use="sig")))
    port, sasl_port = free_port(), free_port()
    prefix = "listener.name.sasl_plaintext"
    keys = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{sasl_port}",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{prefix}.oauthbearer.sasl.jaas.config": f"{OAUTH}.OAuthBearerLoginModule required;",
        f"{prefix}.oauthbearer.sasl.server.callback.handler.class": (
            f"{OAUTH}.OAuthBearerValidatorCallbackHandler"
        ),
        "sasl.oauthbearer.jwks.endpoint.url": keys_file.as_uri(),
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.allow.unverified.issuer": "true",
    }
    broker = new_broker(directory / "broker", keys, port=port)
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys_file.as_uri()}"
    broker.environment = {"JAVA_TOOL_OPTIONS": allowed}
    try:
        broker.start()
        yield Guarded(broker, sasl_port)
        assert broker.is_running()
    finally:
        broker.kill()


def now_seconds() -> int:
    """Return the current time."""
    return SystemClock().now_ms() // 1000


def fresh(number: int = 1, **claims: Any) -> str:
    """A token that is valid now, but for what `claims` says otherwise."""
    now = now_seconds()
    usual: dict[str, Any] = {"iat": now, "exp": now + LIFE_SECONDS, "aud": AUDIENCE}
    return token(rsa_key(number), **(usual | claims))


BAD = {
    "expired": lambda: fresh(exp=now_seconds() - LIFE_SECONDS),
    "for another audience": lambda: fresh(aud="web"),
    "of another provider": lambda: fresh(2),
}


def with_java(
    guarded: Guarded, tools: Tools, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Outcome:
    """List topics with a tool that reads its token from a file."""
    path = tmp_path / "token"
    path.write_text(text)
    package = f"{OAUTH}.secured" if tools.version == jars.KAFKA_3 else OAUTH
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={path.as_uri()}"
    allowed_files = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.files={path}"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"{allowed} {allowed_files}")
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        f"sasl.jaas.config={OAUTH}.OAuthBearerLoginModule required;\n"
        f"sasl.login.callback.handler.class={package}.OAuthBearerLoginCallbackHandler\n"
        f"sasl.oauthbearer.token.endpoint.url={path.as_uri()}\n"
        "sasl.oauthbearer.jwt.retriever.class="
        f"{OAUTH}.FileJwtRetriever\n"
    )
    at = ("--bootstrap-server", f"127.0.0.1:{guarded.port}", "--command-config", str(config))
    return tools.run_alone("topics", *at, "--list")


def test_java_is_let_in(
    guarded: Guarded, tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = with_java(guarded, tools, fresh(), tmp_path, monkeypatch)
    assert outcome.exit_code == 0, outcome.output + outcome.errors


@pytest.mark.parametrize("what", BAD)
def test_java_with_a_bad_token_is_refused(
    guarded: Guarded, tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    outcome = with_java(guarded, tools, BAD[what](), tmp_path, monkeypatch)
    assert outcome.exit_code == 1
    assert '{"status":"invalid_token"}' in outcome.output + outcome.errors


def with_librdkafka(guarded: Guarded, text: str) -> tuple[AdminClient, list[str]]:
    """A client of librdkafka, and the errors that it meets."""
    errors: list[str] = []
    settings: dict[str, Any] = {
        "bootstrap.servers": f"127.0.0.1:{guarded.port}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda _: (text, now_seconds() + LIFE_SECONDS),
        "error_cb": lambda error: errors.append(error.str()),
    }
    return AdminClient(settings), errors


def test_librdkafka_is_let_in(guarded: Guarded) -> None:
    client, errors = with_librdkafka(guarded, fresh())
    client.poll(1)
    assert client.list_topics(timeout=60).brokers
    assert errors == []


@pytest.mark.parametrize("what", BAD)
def test_librdkafka_with_a_bad_token_is_refused(guarded: Guarded, what: str) -> None:
    client, errors = with_librdkafka(guarded, BAD[what]())

    def is_told() -> bool:
        client.poll(0.1)
        return any("invalid_token" in error for error in errors)

    assert wait_until(is_told, 60)


class Provider(AbstractTokenProvider):  # type: ignore[misc] # kafka-python has no types
    """Hands kafka-python a token."""

    def __init__(self, text: str) -> None:
        self._text = text

    def token(self) -> str:
        return self._text


def with_kafka_python(guarded: Guarded, text: str) -> KafkaAdminClient:
    return KafkaAdminClient(
        bootstrap_servers=f"127.0.0.1:{guarded.port}",
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=Provider(text),
    )


def test_kafka_python_is_let_in(guarded: Guarded) -> None:
    client = with_kafka_python(guarded, fresh())
    assert client.list_topics() == []
    client.close()
