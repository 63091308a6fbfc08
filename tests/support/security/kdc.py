"""A Kerberos realm of its own: MIT's key distribution centre, on a free port of this machine."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from typing import TYPE_CHECKING

from tests.support.brokers.broker_process import free_port
from tests.support.processes.children import DIES_WITH_PARENT
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

REALM = "TEST"
WAIT_SECONDS = 60.0
SBIN = "/usr/sbin"

_CLIENT = """[libdefaults]
 default_realm = {realm}
 dns_lookup_realm = false
 dns_lookup_kdc = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
[realms]
 {realm} = {{
  kdc = 127.0.0.1:{port}
 }}
"""
_SERVER = """[kdcdefaults]
 kdc_ports = ""
 kdc_tcp_ports = {port}
[realms]
 {realm} = {{
  database_name = {directory}/principal
  key_stash_file = {directory}/stash
  acl_file = {directory}/acl
 }}
"""


def has_kdc() -> bool:
    """Return whether the Debian packages krb5-kdc and krb5-admin-server are installed."""
    return all(shutil.which(name, path=SBIN) for name in ("krb5kdc", "kadmin.local", "kdb5_util"))


class Kdc:
    """Gives tickets to who has a password or a key table."""

    def __init__(self, directory: Path) -> None:
        """Make an empty realm."""
        directory.mkdir(parents=True)
        self.directory = directory
        self.port = free_port()
        self.config = directory / "krb5.conf"
        self.config.write_text(_client_config(self.port))
        profile = directory / "kdc.conf"
        profile.write_text(_SERVER.format(realm=REALM, port=self.port, directory=directory))
        self.environment = {"KRB5_CONFIG": str(self.config)}
        """Environment of the realm's clients and servers."""
        self._environment = {**os.environ, **self.environment, "KRB5_KDC_PROFILE": str(profile)}
        self._process: subprocess.Popen[bytes] | None = None
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")

    def key_table(self, principal: str) -> Path:
        """Make a principal, and a file with its keys."""
        path = self.directory / f"{principal.replace('/', '-')}.keytab"
        self._run("kadmin.local", "-r", REALM, "-q", f"addprinc -randkey {principal}")
        self._run("kadmin.local", "-r", REALM, "-q", f"ktadd -k {path} {principal}")
        return path

    def start(self) -> None:
        """Start, and wait until it answers."""
        command = [*DIES_WITH_PARENT, f"{SBIN}/krb5kdc", "-n", "-r", REALM]
        with (self.directory / "kdc.out").open("wb") as output:
            self._process = subprocess.Popen(
                command, env=self._environment, stdout=output, stderr=output
            )
        assert wait_until(self._answers, WAIT_SECONDS)

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _run(self, tool: str, *arguments: str) -> None:
        subprocess.run(
            [f"{SBIN}/{tool}", *arguments],
            env=self._environment,
            check=True,
            capture_output=True,
            timeout=WAIT_SECONDS,
        )


def _client_config(port: int) -> str:
    return _CLIENT.format(realm=REALM, port=port)
