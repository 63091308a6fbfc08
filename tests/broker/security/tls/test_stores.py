"""Key stores and trust stores of every format, and configurations that contradict themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker.security.tls.stores import read_identity, read_trusted, store_files
from config.errors import ConfigError
from tests.broker.security.tls.tls_keys import config_of
from tests.support.certificates import PASSWORD, Authority, key_pem

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.certificates import Issued

KINDS = ("PEM", "PKCS12", "JKS")


pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def issued(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Issued:
    return authority.issue("server", tmp_path_factory.mktemp("stores"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_store_has_a_key_and_its_chain(issued: Issued, kind: str) -> None:
    identity = read_identity(config_of(issued.as_keystore(kind)))

    assert identity is not None
    assert key_pem(identity.key) == issued.key_pem()
    assert identity.chain == tuple(issued.chain)


@pytest.mark.parametrize("kind", KINDS)
def test_a_trust_store_has_certificates(authority: Authority, tmp_path: Path, kind: str) -> None:
    config = config_of(authority.as_truststore(tmp_path, kind))

    assert read_trusted(config) == (authority.certificate,)


def test_java_reads_a_trust_store_without_its_password(
    authority: Authority, tmp_path: Path
) -> None:
    keys = authority.as_truststore(tmp_path, "JKS")
    del keys["ssl.truststore.password"]

    assert read_trusted(config_of(keys)) == (authority.certificate,)


@pytest.mark.parametrize("said", ["JKS", "PKCS12"])
def test_the_store_type_is_detected_from_the_file(issued: Issued, said: str) -> None:
    for path in (issued.jks(), issued.pkcs12()):
        keys = issued.as_keystore("PKCS12")
        keys |= {"ssl.keystore.type": said, "ssl.keystore.location": str(path)}
        identity = read_identity(config_of(keys))
        assert identity is not None
        assert key_pem(identity.key) == issued.key_pem()


def test_pem_may_stand_in_the_configuration_itself(authority: Authority, issued: Issued) -> None:
    config = config_of(
        {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": issued.key_pem("secret"),
            "ssl.keystore.certificate.chain": issued.chain_pem(),
            "ssl.key.password": "secret",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": authority.pem(),
        }
    )

    identity = read_identity(config)

    assert identity is not None
    assert key_pem(identity.key) == issued.key_pem()
    assert identity.chain == tuple(issued.chain)
    assert read_trusted(config) == (authority.certificate,)
    assert store_files(config) == ()


def test_without_keys_there_are_no_stores() -> None:
    assert read_identity(config_of({})) is None
    assert read_trusted(config_of({})) is None


@pytest.mark.parametrize("kind", ["PKCS12", "JKS"])
def test_a_wrong_store_password_is_reported_and_not_shown(issued: Issued, kind: str) -> None:
    keys = issued.as_keystore(kind) | {"ssl.keystore.password": "hunter2"}

    with pytest.raises(ConfigError) as refused:
        read_identity(config_of(keys))

    assert str(refused.value).startswith(f"ssl.keystore.location: {issued.store(kind)}: ")
    assert "the password is wrong" in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_a_wrong_key_password_in_jks_is_reported(issued: Issued) -> None:
    keys = issued.as_keystore("JKS") | {"ssl.key.password": "hunter2"}

    with pytest.raises(ConfigError, match="the password of the private key is wrong"):
        read_identity(config_of(keys))


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"ssl.keystore.type": "BCFKS"}, "PEM, JKS and PKCS12 can be read"),
        ({"ssl.keystore.key": "x"}, "are PEM, but ssl.keystore.type is JKS"),
        (
            {"ssl.keystore.type": "PEM", "ssl.keystore.key": "x"},
            "ssl.keystore.key and ssl.keystore.certificate.chain need each other",
        ),
        (
            {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": "/x",
                "ssl.keystore.password": "y",
            },
            "ssl.keystore.password cannot be set with PEM",
        ),
        ({"ssl.keystore.password": "y"}, "ssl.keystore.password is set, but not ssl.keystore.loc"),
        ({"ssl.keystore.location": "/x"}, "ssl.keystore.location is set, but not ssl.keystore.pas"),
        (
            {"ssl.keystore.location": "/no/such", "ssl.keystore.password": "y"},
            "ssl.keystore.location: /no/such: no such file or directory",
        ),
    ],
)
def test_contradictions_are_refused_as_by_apache(keys: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_identity(config_of(keys))

    assert reason in str(refused.value)


def test_a_trust_store_without_certificates_is_refused(issued: Issued) -> None:
    keys = {
        "ssl.truststore.type": "JKS",
        "ssl.truststore.location": str(issued.jks()),
        "ssl.truststore.password": PASSWORD,
    }
    with pytest.raises(ConfigError, match="it has no trusted certificate"):
        read_trusted(config_of(keys))


@pytest.mark.filterwarnings("ignore:PKCS#12 bundle could not be parsed as DER:UserWarning")
@pytest.mark.filterwarnings("ignore::cryptography.utils.CryptographyDeprecationWarning")
@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_stores_are_refused_or_read(
    issued: Issued, tmp_path: Path, kind: str, data: st.DataObject
) -> None:
    stored = bytearray(issued.store(kind).read_bytes())
    position = data.draw(st.integers(0, len(stored) - 1))
    if data.draw(st.booleans()):
        stored[position] = data.draw(st.integers(0, 255))
    else:
        del stored[position:]
    damaged = tmp_path / "damaged"
    damaged.write_bytes(stored)

    keys = issued.as_keystore(kind) | {"ssl.keystore.location": str(damaged)}
    try:
        read_identity(config_of(keys))
    except ConfigError as error:
        assert str(damaged) in str(error)  # noqa: PT017
