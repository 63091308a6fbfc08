"""A file with secrets that every user of the machine may read is told at the start."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from config.loader import load_broker_config
from config.passwords.secret_files import is_secret, readable_by_others

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET = "listener.name.internal.plain.sasl.jaas.config=x required;\n"


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that everybody may look into; pytest's own is not."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


def warned(path: Path, *overrides: str) -> list[str]:
    _, warnings = load_broker_config(path, overrides)
    return [warning for warning in warnings if "every user may read" in warning]


def written(path: Path, text: str, mode: int = 0o644) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def test_secrets_are_passwords_by_any_prefix() -> None:
    names = ("ssl.key.password", "listener.name.x.ssl.key.password", "ssl.keystore.location", "x")
    assert [is_secret(name) for name in names] == [True, True, False, False]


@pytest.mark.parametrize(("mode", "is_told"), [(0o644, True), (0o640, False), (0o600, False)])
def test_a_property_file_with_a_password(public: Path, mode: int, is_told: bool) -> None:
    path = written(public / "server.properties", SECRET, mode)
    expected = [f"{path}: every user may read this file, and it has secrets"] if is_told else []
    assert warned(path) == expected


def test_a_property_file_without_secrets_may_be_world_readable(public: Path) -> None:
    path = written(public / "server.properties", "broker.id=1\nssl.key.password=\n")
    assert warned(path) == []
    assert warned(path, "ssl.key.password=sesame") == []


def test_a_directory_that_is_closed_protects_what_is_in_it(public: Path) -> None:
    path = written(public / "server.properties", SECRET)
    public.chmod(0o700)
    assert readable_by_others([path]) == []


def test_key_stores_and_files_of_providers_count_as_well(public: Path) -> None:
    secrets = written(public / "secrets", "password=sesame\n")
    store = written(public / "store.p12", "")
    path = written(
        public / "server.properties",
        "config.providers=file\n"
        "config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider\n"
        f"ssl.key.password=${{file:{secrets}:password}}\n"
        f"listener.name.x.ssl.keystore.location={store}\n",
    )
    assert [line.partition(":")[0] for line in warned(path)] == [str(secrets), str(store)]


def test_a_file_that_is_not_there_is_nothing_to_read(public: Path) -> None:
    assert readable_by_others([public / "nothing"]) == []
