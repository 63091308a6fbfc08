"""What the configuration and the JAAS file say of the way to ZooKeeper."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from broker.startup.start_error import StartError
from broker.startup.zookeeper_security import DIGEST_MODULE, zookeeper_security
from config.loader import load_broker_config
from controller.zookeeper.security import UNPROTECTED, DigestLogin, ZooKeeperSecurity
from tests.support.brokers.secured_zookeeper import LOGIN_CONFIG, jaas_file

if TYPE_CHECKING:
    from pathlib import Path

    from config.broker import BrokerConfig

LOGIN = {"username": "kafka", "password": "hidden"}


def _config(directory: Path, **keys: str) -> BrokerConfig:
    path = directory / "server.properties"
    lines = [f"{name.replace('_', '.')}={value}\n" for name, value in keys.items()]
    path.write_text(f"log.dirs={directory}\nzookeeper.connect=localhost\n{''.join(lines)}")
    return load_broker_config(path)[0]


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
def test_login_that_cannot_be_is_refused_without_its_password(
    tmp_path: Path, module: str, options: dict[str, str], more: tuple[str, ...], words: str
) -> None:
    path = jaas_file(tmp_path / "jaas.conf", "Client", module, options)
    with pytest.raises(StartError, match=words) as refusal:
        zookeeper_security(_config(tmp_path), _environment(path, *more))
    assert "hidden" not in str(refusal.value)
