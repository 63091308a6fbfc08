"""Protection of the connection to ZooKeeper by the configuration and the JAAS file."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import pytest

from broker.startup.start_error import StartError
from broker.startup.zookeeper_security import DIGEST_MODULE, zookeeper_security
from config.loader import load_broker_config
from controller.zookeeper.security import UNPROTECTED, DigestLogin, ZooKeeperSecurity
from tests.support.brokers.broker_process import write_properties
from tests.support.brokers.secured_zookeeper import LOGIN_CONFIG, jaas_file, tls_keys
from tests.support.certificates import PASSWORD, Authority

if TYPE_CHECKING:
    from pathlib import Path

    from config.broker import BrokerConfig

LOGIN = {"username": "kafka", "password": "hidden"}


def _config(directory: Path, **keys: str) -> BrokerConfig:
    return _configured(directory, {name.replace("_", "."): value for name, value in keys.items()})


def _configured(directory: Path, keys: dict[str, str]) -> BrokerConfig:
    path = write_properties(
        directory / "server.properties",
        {"log.dirs": str(directory), "zookeeper.connect": "localhost", **keys},
    )
    config, warnings = load_broker_config(path)
    assert warnings == []
    return config


def _environment(path: Path, *more: str) -> dict[str, str]:
    return {"KAFKA_OPTS": " ".join([f"{LOGIN_CONFIG}{path}", *more])}


def test_without_any_key_nothing_is_protected(tmp_path: Path) -> None:
    assert zookeeper_security(_config(tmp_path), {}) == UNPROTECTED


def test_login_is_the_section_client(tmp_path: Path) -> None:
    path = jaas_file(tmp_path / "jaas.conf", "Client", DIGEST_MODULE, LOGIN)
    found = zookeeper_security(_config(tmp_path, zookeeper_set_acl="true"), _environment(path))
    assert found == ZooKeeperSecurity(login=DigestLogin("kafka", "hidden"), sets_acl=True)


def test_section_may_have_another_name(tmp_path: Path) -> None:
    path = jaas_file(tmp_path / "jaas.conf", "Guardian", DIGEST_MODULE, LOGIN)
    named = _environment(path, "-Dzookeeper.sasl.clientconfig=Guardian")
    assert zookeeper_security(_config(tmp_path), named).login == DigestLogin("kafka", "hidden")
    assert zookeeper_security(_config(tmp_path), _environment(path)).login is None


def test_set_acl_without_an_identity_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="so ZooKeeper must know it"):
        zookeeper_security(_config(tmp_path, zookeeper_set_acl="true"), {})


@pytest.mark.parametrize(
    ("module", "options", "more", "words"),
    [
        ("com.sun.security.auth.module.Krb5LoginModule", LOGIN, (), "logs in to ZooKeeper with"),
        (DIGEST_MODULE, {"password": "hidden"}, (), "has no 'username'"),
        (DIGEST_MODULE, LOGIN, ("-Dzookeeper.sasl.client=false",), "zookeeper.sasl.client=false"),
    ],
)
def test_an_invalid_zookeeper_login_is_refused_without_its_password(
    tmp_path: Path, module: str, options: dict[str, str], more: tuple[str, ...], words: str
) -> None:
    path = jaas_file(tmp_path / "jaas.conf", "Client", module, options)
    with pytest.raises(StartError, match=words) as refusal:
        zookeeper_security(_config(tmp_path), _environment(path, *more))
    assert "hidden" not in str(refusal.value)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return keys for TLS with a certificate."""
    authority = Authority()
    return tls_keys(authority.issue("broker", tmp_path_factory.mktemp("keys")), authority)


def test_tls_is_as_the_keys_for_zookeeper_say(tmp_path: Path, keys: dict[str, str]) -> None:
    found = zookeeper_security(_configured(tmp_path, keys), {})
    assert found.login is None
    assert found.tls is not None
    assert found.tls.check_hostname
    assert found.tls.verify_mode is ssl.CERT_REQUIRED
    assert found.tls.minimum_version is found.tls.maximum_version is ssl.TLSVersion.TLSv1_2
    assert [one["subject"] for one in found.tls.get_ca_certs()] == [
        ((("commonName", "Test Authority"),),)
    ]


def test_versions_and_the_check_of_names_can_be_chosen(
    tmp_path: Path, keys: dict[str, str]
) -> None:
    chosen = {
        "zookeeper.ssl.enabled.protocols": "TLSv1.2,TLSv1.3",
        "zookeeper.ssl.endpoint.identification.algorithm": "",
    }
    tls = zookeeper_security(_configured(tmp_path, keys | chosen), {}).tls
    assert tls is not None
    assert not tls.check_hostname
    assert tls.maximum_version is ssl.TLSVersion.TLSv1_3


def test_certificate_is_identity_enough_for_set_acl(tmp_path: Path, keys: dict[str, str]) -> None:
    owning = keys | {"zookeeper.set.acl": "true"}
    assert zookeeper_security(_configured(tmp_path, owning), {}).sets_acl
    without = {name: value for name, value in owning.items() if "keystore" not in name}
    with pytest.raises(StartError, match="so ZooKeeper must know it"):
        zookeeper_security(_configured(tmp_path, without), {})


def test_pem_stores_go_by_their_ending(tmp_path: Path) -> None:
    authority = Authority()
    issued = authority.issue("broker", tmp_path)
    keys = {
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.keystore.location": str(issued.pem(PASSWORD)),
        "zookeeper.ssl.keystore.password": PASSWORD,
        "zookeeper.ssl.truststore.location": str(authority.pem_file(tmp_path)),
    }
    assert zookeeper_security(_configured(tmp_path, keys), {}).tls is not None


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("keystore.location", "/none/such.p12", r"zookeeper\.ssl\.keystore\.location: /none/such"),
        ("keystore.password", "guessed", r"the password is wrong"),
        ("enabled.protocols", "SSLv3", r"SSLv3 is none of"),
        ("crl.enable", "true", r"does not look for revoked certificates"),
    ],
)
def test_invalid_zookeeper_tls_settings_are_refused(
    tmp_path: Path, keys: dict[str, str], key: str, value: str, words: str
) -> None:
    wrong = keys | {f"zookeeper.ssl.{key}": value}
    with pytest.raises(StartError, match=words) as refusal:
        zookeeper_security(_configured(tmp_path, wrong), {})
    assert "guessed" not in str(refusal.value)


def test_no_other_socket_of_java_does_tls(tmp_path: Path, keys: dict[str, str]) -> None:
    wrong = keys | {"zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNIO"}
    with pytest.raises(StartError, match=r"zookeeper\.clientCnxnSocket: with TLS it can only be"):
        zookeeper_security(_configured(tmp_path, wrong), {})
