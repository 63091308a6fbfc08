"""Delegation tokens with Apache Kafka's tools, and logging in with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.support.brokers.broker_process import BrokerProcess, free_port
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.interop.conftest import NewBroker
    from tests.support.tools import Outcome, Tools

SECURITY = "org.apache.kafka.common.security"
USERS = ("alice", "bob")
PLAIN = f"{SECURITY}.plain.PlainLoginModule required"
SCRAM = f"{SECURITY}.scram.ScramLoginModule required"
ANSWER_SECONDS = 60.0
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")


class Token(NamedTuple):
    """A token, as printed by the tool."""

    token_id: str
    hmac: str


class Client:
    """The tools of one version, at a broker with SASL."""

    def __init__(self, tools: Tools, port: int, directory: Path) -> None:
        self._tools = tools
        self._port = port
        self._directory = directory

    def as_user(self, name: str, tool: str, *arguments: str) -> Outcome:
        """Run a tool as one who has a password."""
        login = f'{PLAIN} username="{name}" password="{name}-secret";'
        return self._run("PLAIN", login, tool, *arguments)

    def with_token(self, token: Token, mechanism: str, tool: str, *arguments: str) -> Outcome:
        """Run a tool as one who has a token."""
        who = f'username="{token.token_id}" password="{token.hmac}"'
        return self._run(mechanism, f'{SCRAM} {who} tokenauth="true";', tool, *arguments)

    def create(self, name: str, *arguments: str) -> Token:
        """Create a token with the tool."""
        made = self.as_user(
            name, "delegation-tokens", "--create", "--max-life-time-period", "-1", *arguments
        )
        assert made.exit_code == 0, made
        token = Token(*made.lines[-1].split()[:2])
        # Apache's controller answers before its broker has heard of the token.
        assert wait_until(lambda: self.shows(name, token), ANSWER_SECONDS)
        return token

    def shows(self, name: str, token: Token) -> bool:
        """Return whether the owner's token is described."""
        shown = self.as_user(
            name, "delegation-tokens", "--describe", "--owner-principal", f"User:{name}"
        )
        return token.hmac in shown.output

    def _run(self, mechanism: str, login: str, tool: str, *arguments: str) -> Outcome:
        path = self._directory / "client.properties"
        path.write_text(
            f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.jaas.config={login}\n"
        )
        at = ("--bootstrap-server", f"127.0.0.1:{self._port}", "--command-config", str(path))
        return self._tools.run(tool, *at, *arguments)


def with_sasl(port: int, sasl_port: int) -> dict[str, str]:
    """The keys of a broker with tokens."""
    prefix = "listener.name.sasl_plaintext"
    passwords = " ".join(f'user_{name}="{name}-secret"' for name in USERS)
    return {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{sasl_port}",
        "advertised.listeners": (
            f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{sasl_port}"
        ),
        "sasl.enabled.mechanisms": ",".join(("PLAIN", *MECHANISMS)),
        f"{prefix}.plain.sasl.jaas.config": f"{PLAIN} {passwords};",
        **{f"{prefix}.{name.lower()}.sasl.jaas.config": f"{SCRAM};" for name in MECHANISMS},
        "delegation.token.secret.key": "a secret key",
    }


@pytest.fixture(scope="module")
def token_broker(
    new_broker: NewBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[BrokerProcess, int]]:
    """Return a running broker, and its port for SASL."""
    port, sasl_port = free_port(), free_port()
    broker = new_broker(tmp_path_factory.mktemp("tokens"), with_sasl(port, sasl_port), port=port)
    try:
        broker.start()
        yield broker, sasl_port
    finally:
        broker.kill()


@pytest.fixture
def client(tools: Tools, token_broker: tuple[BrokerProcess, int], tmp_path: Path) -> Client:
    return Client(tools, token_broker[1], tmp_path)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_token_logs_in_until_it_is_expired(client: Client, mechanism: str) -> None:
    token = client.create("alice")
    assert client.with_token(token, mechanism, "topics", "--list").exit_code == 0
    expired = client.as_user(
        *("alice", "delegation-tokens", "--expire", "--expiry-time-period", "-1"),
        *("--hmac", token.hmac),
    )
    assert expired.exit_code == 0, expired
    refused = client.with_token(token, mechanism, "topics", "--list")
    assert refused.exit_code == 1
    assert "invalid credentials with SASL mechanism" in refused.output + refused.errors


def test_renewer_prolongs_a_token_and_its_owner_sees_it(client: Client) -> None:
    token = client.create("alice", "--renewer-principal", "User:bob")
    renewed = client.as_user(
        *("bob", "delegation-tokens", "--renew", "--renew-time-period", "-1"),
        *("--hmac", token.hmac),
    )
    assert "Completed renew operation" in renewed.output
    shown = client.as_user(
        "alice", "delegation-tokens", "--describe", "--owner-principal", "User:alice"
    )
    (row,) = [line for line in shown.lines if token.token_id in line]
    assert token.hmac in row
    assert "[User:bob]" in row


def test_token_cannot_be_had_by_a_token(client: Client) -> None:
    token = client.create("alice")
    refused = client.with_token(
        token, "SCRAM-SHA-256", "delegation-tokens", "--create", "--max-life-time-period", "-1"
    )
    assert refused.exit_code == 1
    assert "delegation token authenticated channels" in refused.errors


def test_another_user_can_neither_renew_nor_expire_a_token(client: Client) -> None:
    token = client.create("alice")
    for words in (("--renew", "--renew-time-period"), ("--expire", "--expiry-time-period")):
        refused = client.as_user("bob", "delegation-tokens", *words, "-1", "--hmac", token.hmac)
        assert refused.exit_code == 1
        assert "DelegationTokenOwnerMismatchException" in refused.errors


def test_wrong_secret_of_a_token_does_not_log_in(client: Client) -> None:
    token, other = client.create("alice"), client.create("bob")
    mixed = Token(token.token_id, other.hmac)
    refused = client.with_token(mixed, "SCRAM-SHA-512", "topics", "--list")
    assert refused.exit_code == 1


def test_tokens_and_their_secrets_survive_a_restart(
    client: Client, token_broker: tuple[BrokerProcess, int]
) -> None:
    token = client.create("alice")
    broker, _ = token_broker
    broker.stop()
    broker.start()
    assert client.with_token(token, "SCRAM-SHA-256", "topics", "--list").exit_code == 0
