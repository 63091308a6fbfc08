"""Variables in values are replaced by what providers have, as Apache Kafka's do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from config.errors import ConfigError
from config.loader import load_broker_config
from config.passwords.providers import Variable, read_providers

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PACKAGE = "org.apache.kafka.common.config.provider"
CLASSES = {
    "file": f"{PACKAGE}.FileConfigProvider",
    "dir": f"{PACKAGE}.DirectoryConfigProvider",
    "env": f"{PACKAGE}.EnvVarConfigProvider",
}
NAMED = {
    "config.providers": "file,dir,env",
    **{f"config.providers.{name}.class": java for name, java in CLASSES.items()},
}
ENVIRONMENT = {"SECRET": "from env", "KAFKA_SECRET": "kafka's"}


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    path = tmp_path / "secrets.properties"
    path.write_text("one=1\npath=a/b\nunicode=żółw\nblank=\nvariable=${env:SECRET}\n", "utf-8")
    return path


def resolved(text: str, stated: Mapping[str, str] = NAMED) -> str:
    return read_providers(stated, ENVIRONMENT).resolve(text)


def test_a_key_of_a_file_stands_in_for_its_variable(secrets: Path) -> None:
    assert resolved(f"${{file:{secrets}:one}}") == "1"
    assert resolved(f"<${{file:{secrets}:one}}|${{file:{secrets}:unicode}}>") == "<1|żółw>"
    assert resolved(f"${{file:{secrets}:blank}}") == ""


def test_resolved_variables_are_not_resolved_again(secrets: Path) -> None:
    assert resolved(f"${{file:{secrets}:variable}}") == "${env:SECRET}"


def test_files_of_a_directory_and_variables_of_the_environment(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("in a file\n", "utf-8")
    assert resolved(f"${{dir:{tmp_path}:password}}") == "in a file\n"
    assert resolved("${env:SECRET} and ${env:KAFKA_SECRET}") == "from env and kafka's"


@pytest.mark.parametrize(
    ("text", "variable"),
    [
        ("${env:NOBODY}", Variable("env", "", "NOBODY")),
        ("${file:one}", Variable("file", "", "one")),
        ("${dir:/:etc/passwd}", Variable("dir", "/", "etc/passwd")),
        ("${dir:/no/such:one}", Variable("dir", "/no/such", "one")),
    ],
)
def test_an_unresolved_variable_stays_and_is_noted(text: str, variable: Variable) -> None:
    providers = read_providers(NAMED, ENVIRONMENT)
    assert providers.resolve(text) == text
    assert providers.unresolved == [variable]


def test_variables_of_unconfigured_providers_stay() -> None:
    providers = read_providers({}, ENVIRONMENT)
    assert (
        providers.resolve("${env:SECRET} ${vault:a:b} ${no}") == "${env:SECRET} ${vault:a:b} ${no}"
    )
    assert providers.unresolved == []


def test_a_file_outside_the_allowed_paths_is_not_read(secrets: Path) -> None:
    allowed = secrets.parent / "allowed"
    allowed.mkdir()
    (allowed / "some.properties").write_text("one=yes\n")
    stated = {**NAMED, "config.providers.file.param.allowed.paths": str(allowed)}
    for place, found in [
        (allowed / "some.properties", "yes"),
        (secrets, None),
        (allowed / ".." / secrets.name, None),
    ]:
        text = f"${{file:{place}:one}}"
        assert resolved(text, stated) == (found or text)


def test_the_environment_is_read_as_far_as_it_is_allowed() -> None:
    stated = {**NAMED, "config.providers.env.param.allowlist.pattern": "KAFKA_.*"}
    assert resolved("${env:SECRET}${env:KAFKA_SECRET}", stated) == "${env:SECRET}kafka's"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"config.providers.file.class": "com.acme.Vault"}, "Could not load config provider"),
        ({"config.providers.dir.param.allowed.paths": "relative"}, "is not absolute"),
        ({"config.providers.dir.param.allowed.paths": "/no/such"}, "does not exist"),
        ({"config.providers.env.param.allowlist.pattern": "("}, "unterminated"),
    ],
)
def test_an_invalid_config_provider_is_refused(changes: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_providers({**NAMED, **changes})


@pytest.mark.parametrize("text", ["${file:/no/such:one}", "${env:path:SECRET}"])
def test_unreadable_secret_files_are_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        resolved(text)


def test_a_malformed_file_of_secrets_is_refused_without_its_contents(tmp_path: Path) -> None:
    path = tmp_path / "secrets"
    path.write_text("one=sesame\\u00zz\n")
    with pytest.raises(ConfigError) as refusal:
        resolved(f"${{file:{path}:one}}")
    assert "sesame" not in str(refusal.value)


def property_file(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "server.properties"
    path.write_text("\n".join([*(f"{k}={v}" for k, v in NAMED.items()), *lines]))
    return path


def test_a_property_file_has_values_of_providers_and_no_warning(
    tmp_path: Path, secrets: Path
) -> None:
    path = property_file(tmp_path, f"broker.id=${{file:{secrets}:one}}", "log.dirs=${env:SECRET}")
    config, warnings = load_broker_config(path, (), ENVIRONMENT)
    assert (config.broker_id, config.log_dirs, warnings) == (1, ("from env",), [])
    assert config.stated["log.dirs"] == "from env"


def test_an_unresolved_variable_causes_a_warning(tmp_path: Path) -> None:
    path = property_file(tmp_path, "log.dirs=${env:NOBODY}")
    _, warnings = load_broker_config(path, (), ENVIRONMENT)
    assert warnings == [f"{path}:5: log.dirs: nothing is found for ${{env:NOBODY}}"]


def test_an_unreadable_provider_file_ends_the_start(tmp_path: Path) -> None:
    path = property_file(tmp_path, "log.dirs=${file:/no/such:dirs}")
    with pytest.raises(ConfigError, match=r":5: log\.dirs: Could not read properties"):
        load_broker_config(path)


def test_a_provider_without_a_class_causes_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("config.providers=vault\n")
    _, warnings = load_broker_config(path)
    why = "vault provides nothing: config.providers.vault.class is not set"
    assert warnings == [f"{path}:1: config.providers: {why}"]
