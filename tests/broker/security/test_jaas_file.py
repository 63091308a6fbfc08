"""JAAS files, and how they are found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from broker.security.jaas_file import java_properties, login_sections
from config.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

FILE = """
// as in Apache Kafka's documentation
Client {
  org.apache.zookeeper.server.auth.DigestLoginModule required
  username="kafka"
  password="secret";
};
KafkaServer { org.apache.kafka.common.security.plain.PlainLoginModule required username=admin; };
"""


def test_system_properties_are_those_of_kafka_opts() -> None:
    options = "-Xmx1g -Da=1 '-Db=two words' -Dflag -Djava.security.auth.login.config=/etc/a=b"
    assert java_properties({"KAFKA_OPTS": options}) == {
        "a": "1",
        "b": "two words",
        "flag": "",
        "java.security.auth.login.config": "/etc/a=b",
    }
    assert java_properties({}) == {}


def test_sections_are_read_from_the_file_that_java_would_read(tmp_path: Path) -> None:
    path = tmp_path / "jaas.conf"
    path.write_text(FILE)
    options = f"-Djava.security.auth.login.config={path}"
    sections = login_sections({"KAFKA_OPTS": options})
    assert list(sections) == ["Client", "KafkaServer"]
    [module] = sections["Client"]
    assert module.class_name == "org.apache.zookeeper.server.auth.DigestLoginModule"
    assert module.options == {"username": "kafka", "password": "secret"}
    assert login_sections({"KAFKA_OPTS": f"-Djava.security.auth.login.config=file:{path}"})


def test_no_file_is_no_section() -> None:
    assert login_sections({"KAFKA_OPTS": "-Dother=1"}) == {}


def test_a_missing_file_and_an_open_quotation_are_reported(tmp_path: Path) -> None:
    options = f"-Djava.security.auth.login.config={tmp_path}/none"
    with pytest.raises(ConfigError, match=r"none cannot be read: .*No such file"):
        login_sections({"KAFKA_OPTS": options})
    with pytest.raises(ConfigError, match="KAFKA_OPTS: a quotation"):
        login_sections({"KAFKA_OPTS": "-Da='b"})
