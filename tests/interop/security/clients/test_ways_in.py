"""Every client gets in by every protocol and mechanism, and with nothing else."""

from __future__ import annotations

import subprocess
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from tests.interop.clients import aio, confluent, kafka_python, kcat
from tests.interop.clients.java import each_version, run_program
from tests.interop.clients.record import Sending, numbered_records
from tests.interop.conftest import create_topic
from tests.support import jars
from tests.support.brokers.broker_process import write_properties
from tests.support.security.access import WAYS_IN, Access

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from tests.interop.clients.record import Settings
    from tests.interop.conftest import NewName
    from tests.support.security.realm import Realm
    from tests.support.security.secured_brokers import SecuredBroker

COUNT = 20
REFUSED_SECONDS = 60.0
WITH_TOKENS = (Access("SASL_PLAINTEXT", "OAUTHBEARER"), Access("SASL_SSL", "OAUTHBEARER"))
WORDS = {confluent: "librdkafka", kcat: "librdkafka", kafka_python: "kafka_python", aio: "aiokafka"}

each_way = pytest.mark.parametrize("access", WAYS_IN, ids=str)

REFUSED = "invalid credentials with SASL mechanism SCRAM"
"""Error of kcat, whose librdkafka is older than 2.6.1 and sends its nonce twice: brokers since
3.7.2 check that (CVE-2024-56128)."""


def _settings(client: ModuleType, access: Access, realm: Realm) -> Settings:
    settings: Settings = getattr(access, WORDS[client])(realm)
    return settings


def _new_topic(secured: SecuredBroker, new_name: NewName) -> str:
    name = new_name("secured")
    admin = AdminClient({"bootstrap.servers": secured.ports.bootstrap("PLAINTEXT")})
    create_topic(admin, name, 1)
    return name


@each_way
@pytest.mark.parametrize("client", WORDS, ids=lambda client: client.NAME)
def test_client_writes_and_reads_or_is_refused_as_by_apache(
    secured: SecuredBroker, realm: Realm, new_name: NewName, client: ModuleType, access: Access
) -> None:
    topic = _new_topic(secured, new_name)
    settings, bootstrap = _settings(client, access, realm), secured.bootstrap(access)
    sent = numbered_records(COUNT)
    if client is kcat and access.mechanism.startswith("SCRAM"):
        with pytest.raises(AssertionError, match=REFUSED):
            client.produce(bootstrap, topic, sent, Sending(), settings)
        return

    client.produce(bootstrap, topic, sent, Sending(style="callback"), settings)

    read = client.read(bootstrap, topic, COUNT, settings)
    assert [record.value for record in read] == [record.value for record in sent]


@pytest.mark.parametrize("access", WITH_TOKENS, ids=str)
@pytest.mark.parametrize("client", WORDS, ids=lambda client: client.NAME)
def test_client_writes_and_reads_with_a_token(
    secured: SecuredBroker, realm: Realm, new_name: NewName, client: ModuleType, access: Access
) -> None:
    topic, sent = _new_topic(secured, new_name), numbered_records(COUNT)
    settings, bootstrap = _settings(client, access, realm), secured.bootstrap(access)

    client.produce(bootstrap, topic, sent, Sending(style="callback"), settings)

    read = client.read(bootstrap, topic, COUNT, settings)
    assert [record.value for record in read] == [record.value for record in sent]


@each_version
def test_java_clients_write_read_and_commit(
    secured: SecuredBroker, realm: Realm, tmp_path: Path, version: str
) -> None:
    needs_another_library_for_tokens = version == jars.CLIENTS_2
    ways = WAYS_IN if needs_another_library_for_tokens else WAYS_IN + WITH_TOKENS
    said = _run_java(secured, realm, tmp_path, version, ways)
    errors = said.pop("stderr")
    assert said == {str(access): f"{COUNT} records" for access in ways}, errors


@pytest.mark.parametrize("version", [jars.CLIENTS_2, jars.KAFKA_4])
def test_java_clients_get_sasl_authentication_exception_for_a_wrong_password(
    secured: SecuredBroker, realm: Realm, tmp_path: Path, version: str
) -> None:
    ways = tuple(replace(one, password="guessed") for one in WAYS_IN if one.mechanism)
    said = _run_java(secured, realm, tmp_path, version, ways)
    errors = said.pop("stderr")
    assert said == {str(access): "SaslAuthenticationException" for access in ways}, errors
    assert "guessed" not in secured.process.output_path.read_text()


def _run_java(
    secured: SecuredBroker, realm: Realm, directory: Path, version: str, ways: tuple[Access, ...]
) -> dict[str, str]:
    files = []
    for access in ways:
        keys = {"bootstrap.servers": secured.bootstrap(access), **access.java(realm)}
        files.append(str(write_properties(directory / str(access), keys)))
    return run_program(version, "Secured", [f"secured-{version}-{len(ways)}-", *files])


@pytest.mark.parametrize("access", [one for one in WAYS_IN if one.mechanism], ids=str)
def test_librdkafka_reports_authentication_error_for_a_wrong_password(
    secured: SecuredBroker, realm: Realm, access: Access
) -> None:
    wrong = replace(access, password="guessed")
    assert _refusal(secured, access, wrong.librdkafka(realm)) == "_AUTHENTICATION"


def test_client_without_a_certificate_is_refused_by_tls(
    secured: SecuredBroker, realm: Realm
) -> None:
    access = Access("SSL")
    keys = access.librdkafka(realm)
    del keys["ssl.certificate.location"], keys["ssl.key.location"]
    assert _refusal(secured, access, keys) in {"_SSL", "_TRANSPORT"}


def _refusal(secured: SecuredBroker, access: Access, keys: Settings) -> str:
    """Return the name of librdkafka's first error."""
    errors: list[str] = []
    told: Settings = {"error_cb": lambda error: errors.append(error.name()), "log_level": 0}
    admin = AdminClient({"bootstrap.servers": secured.bootstrap(access), **keys, **told})
    deadline = time.monotonic() + REFUSED_SECONDS
    while not errors and time.monotonic() < deadline:
        admin.poll(0.1)
    return errors[0]


def test_openssl_sees_the_certificate_and_tls_1_3(secured: SecuredBroker, realm: Realm) -> None:
    command = ["openssl", "s_client", "-connect", secured.bootstrap(Access("SASL_SSL"))]
    trusted = str(realm.authority.pem_file(realm.directory))
    outcome = subprocess.run(
        [*command, "-CAfile", trusted, "-verify_hostname", "localhost", "-verify_return_error"],
        input="",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Verification: OK" in outcome.stdout, outcome.stderr
    assert "TLSv1.3" in outcome.stdout
