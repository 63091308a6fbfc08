"""`scripts/secure.py`: files that make a secured broker, and are kept from others."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from config.loader import load_broker_config

SCRIPT = Path(__file__).parents[1] / "scripts" / "secure.py"
SECONDS = 120.0
PUBLIC = {"ca.pem"}


def _secure(directory: Path, *more: str) -> dict[str, Path]:
    """Run it as by a user whose files others may read, unless a program says something else."""
    command = [sys.executable, str(SCRIPT), str(directory), *more]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS, check=True, umask=0o022
    )
    return {Path(line).name: Path(line) for line in ended.stdout.splitlines()}


def test_secrets_are_for_their_owner_only(tmp_path: Path) -> None:
    files = _secure(tmp_path / "secure")
    modes = {name: stat.S_IMODE(path.stat().st_mode) for name, path in files.items()}
    assert {name for name, mode in modes.items() if mode & 0o077} == PUBLIC
    assert {"server.properties", "broker.pem", "ca.key", "alice.librdkafka"} <= files.keys()


def test_broker_listens_with_sasl_ssl_alone(tmp_path: Path) -> None:
    config, warnings = load_broker_config(_secure(tmp_path)["server.properties"])
    assert warnings == []
    assert config.listeners == ("SASL_SSL://:9092",)
    assert config.security_inter_broker_protocol == "SASL_SSL"
    assert config.super_users == "User:admin"


def test_second_run_keeps_certificates_and_passwords(tmp_path: Path) -> None:
    files = _secure(tmp_path)
    kept = {name: files[name].read_text() for name in ("broker.pem", "ca.pem", "server.properties")}
    more = _secure(tmp_path, "--brokers", "3")
    assert {name: more[name].read_text() for name in kept} == kept
    password = more["alice.librdkafka"].read_text().partition("sasl.password=")[2].strip()
    for number in range(3):
        text = more[f"server-{number}.properties"].read_text()
        assert f'user_alice="{password}"' in text
        assert f"SASL_SSL://:{9092 + number}" in text


@pytest.mark.parametrize("host", ["kafka.example", "10.1.2.3"])
def test_certificate_is_for_the_host_that_clients_are_told(tmp_path: Path, host: str) -> None:
    files = _secure(tmp_path, "--host", host)
    option = "-verify_ip" if host[0].isdigit() else "-verify_hostname"
    command = ["openssl", "verify", "-x509_strict", "-CAfile", str(files["ca.pem"]), option, host]
    checked = subprocess.run(
        [*command, str(files["broker.pem"])],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr
    assert f"advertised.listeners=SASL_SSL://{host}:9092" in files["server.properties"].read_text()
