"""GSSAPI: clients with tickets of a Kerberos realm of the test's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from protocol.errors import ErrorCode
from protocol.headers import request_front
from protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
)
from tests.support.brokers.broker_process import BrokerProcess, free_port
from tests.support.security.kdc import REALM, Kdc, has_kdc
from tests.support.wire import RawConnection

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from protocol.schema import Request
    from tests.interop.conftest import NewBroker
    from tests.support.tools import Outcome, Tools

pytest.importorskip("gssapi")
pytestmark = pytest.mark.skipif(not has_kdc(), reason="krb5-kdc and krb5-admin-server are missing")

MODULE = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"


class Kerberized(NamedTuple):
    """A broker with a key, and users with theirs."""

    broker: BrokerProcess
    port: int
    kdc: Kdc
    key_tables: dict[str, Path]


@pytest.fixture(scope="module")
def kerberized(
    new_broker: NewBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kerberized]:
    """Return a running broker, and the centre that its clients ask."""
    directory = tmp_path_factory.mktemp("kerberos")
    kdc = Kdc(directory / "kdc")
    names = ("kafka/localhost", "alice", "bob/desk", "eve")
    key_tables = {name: kdc.key_table(name) for name in names}
    port, sasl_port = free_port(), free_port()
    prefix = "listener.name.sasl_plaintext"
    keys = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://localhost:{sasl_port}",
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        f"{prefix}.sasl.kerberos.principal.to.local.rules": (
            f"RULE:[1:$1@$0](eve@{REALM}),RULE:[2:$1-$2]/U,DEFAULT"
        ),
        f"{prefix}.gssapi.sasl.jaas.config": (
            f'{MODULE} keyTab="{key_tables["kafka/localhost"]}" '
            f'principal="kafka/localhost@{REALM}";'
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:alice;User:BOB-DESK",
    }
    broker = new_broker(directory / "broker", keys, port=port)
    broker.environment = {
        **kdc.environment,
        "JAVA_TOOL_OPTIONS": f"-Djava.security.krb5.conf={kdc.config}",
    }
    try:
        kdc.start()
        broker.start()
        yield Kerberized(broker, sasl_port, kdc, key_tables)
    finally:
        broker.kill()
        kdc.stop()


def run(
    kerberized: Kerberized,
    tools: Tools,
    name: str,
    key_table: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Outcome:
    """Create a topic with a tool, as a principal."""
    option = f"-Djava.security.krb5.conf={kerberized.kdc.config}"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", option)
    path = kerberized.kdc.directory / "client.properties"
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\n"
        "sasl.kerberos.service.name=kafka\n"
        f'sasl.jaas.config={MODULE} keyTab="{kerberized.key_tables[key_table]}" '
        f'principal="{name}@{REALM}";\n'
    )
    topic = f"of-{name.replace('/', '-')}-{tools.version}"
    at = ("--bootstrap-server", f"localhost:{kerberized.port}", "--command-config", str(path))
    return tools.run_alone("topics", *at, "--create", "--topic", topic)


@pytest.mark.parametrize("name", ["alice", "bob/desk"])
def test_a_ticket_authenticates_the_principal_of_the_rules(
    kerberized: Kerberized, tools: Tools, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = run(kerberized, tools, name, name, monkeypatch)
    assert made.exit_code == 0, made.output + made.errors


def test_a_principal_without_a_local_name_is_refused(
    kerberized: Kerberized, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = run(kerberized, tools, "eve", "eve", monkeypatch)
    assert refused.exit_code == 1


def test_damaged_kerberos_tokens_are_refused_and_the_broker_stays_up(
    kerberized: Kerberized, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    for token in (b"", b"\x60", b"\x60\x82\xff\xff" + bytes(100), bytes(1000)):
        assert authenticate(kerberized.port, token) == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert kerberized.broker.is_running()


def authenticate(port: int, token: bytes) -> int:
    """The error with which a first token is answered."""
    with RawConnection.open(port) as connection:
        ask(connection, SaslHandshakeRequest(mechanism="GSSAPI"))
        answer = ask(connection, SaslAuthenticateRequest(auth_bytes=token))
    return SaslAuthenticateResponse.decode(1, memoryview(answer)[4:]).error_code


def ask(connection: RawConnection, request: Request) -> bytes:
    """Send a request in version 1."""
    body = request.encode(1)
    connection.send(request_front(1, request.API_KEY, 1, b"raw", len(body)) + body)
    return connection.receive()
