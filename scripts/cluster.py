"""Run ZooKeeper and three brokers on this machine until Ctrl-C: `make cluster`.

Each line of output has its server's name in front. When one server ends the others go on, so that
killing a broker shows what a cluster is for; Ctrl-C ends the brokers first and ZooKeeper last.

Once all brokers serve, one is asked for a group's coordinator. That makes the topic of groups'
offsets while it can have all its replicas; a first consumer that comes when a broker is down would
wait for that one, as it would with Apache Kafka.

`make cluster ARGS=--secure` has the brokers listen on SASL_SSL, with an authorizer; the files of
brokers and clients come from scripts/secure.py, and lie in build/secure.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Self

ROOT = Path(__file__).parents[1]
ZOOKEEPER = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
CLASS_PATH = "/usr/share/java/slf4j-simple.jar:/usr/share/java/zookeeper.jar"
START_SECONDS = 30.0
STOP_SECONDS = 60.0
BROKERS = 3
SECURE = ROOT / "build" / "secure"
ADMIN = "admin"
SASL_HANDSHAKE, FIND_COORDINATOR = 17, 10
GROUP = b"make-cluster"
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def show(name: str, line: str) -> None:
    """Print a line with its server's name in front; nothing once the terminal is closed.

    What is ended then must still be waited for, and its output be taken, or it could not end.
    """
    try:
        print(f"{name:>9} | {line}", flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Server:
    """A process whose output is shown with its name."""

    def __init__(self, name: str, command: list[str]) -> None:
        self.name = name
        # A process group of its own: Ctrl-C in the terminal reaches this script only.
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            process_group=0,
        )
        threading.Thread(target=self._show, daemon=True).start()

    def _show(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            show(self.name, line.rstrip("\n"))
        show(self.name, f"ended with exit code {self.process.wait()}")

    def end(self) -> None:
        """Ask it to stop; kill it if it does not."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()


def zookeeper_command(config: str) -> list[str]:
    """Debian's ZooKeeper, with a small heap and warnings only."""
    options = ["-Xmx128m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
    return ["java", *options, "-cp", CLASS_PATH, ZOOKEEPER, config]


def wait_for_port(port: int, server: Server) -> None:
    """Return once `server` accepts connections."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if server.process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"cluster: {server.name} does not serve port {port}")
            time.sleep(0.05)
        else:
            return


def port_of(config: Path) -> int:
    """The port in ZooKeeper's file, or a broker's."""
    for line in config.read_text().splitlines():
        key, _, value = line.partition("=")
        if key in {"clientPort", "listeners"}:
            return int(value.rpartition(":")[2])
    sys.exit(f"cluster: {config} has no clientPort and no listeners")


def check_free(port: int, config: Path) -> None:
    """End here if somebody listens: the brokers would join a ZooKeeper that is not ours."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return
    file = config.relative_to(ROOT)
    sys.exit(f"cluster: port {port} ({file}) is in use; does another cluster or broker run?")


class Client:
    """Asks a broker; `admin` is the file that says how to get in, None where anybody may."""

    def __init__(self, port: int, admin: Path | None) -> None:
        self._broker = socket.create_connection(("localhost", port), timeout=5)
        if admin is not None:
            context = ssl.create_default_context(cafile=str(admin.with_name("ca.pem")))
            self._broker = context.wrap_socket(self._broker, server_hostname="localhost")
            password = admin.read_text().partition("sasl.password=")[2].strip()
            self.ask(SASL_HANDSHAKE, b"\0\5PLAIN")
            self._exchange(f"\0{ADMIN}\0{password}".encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._broker.close()

    def ask(self, api_key: int, body: bytes) -> bytes:
        """The answer to version 0 of a request, without its correlation id."""
        return self._exchange(struct.pack(">hhih", api_key, 0, 0, -1) + body)[4:]

    def _exchange(self, frame: bytes) -> bytes:
        self._broker.sendall(struct.pack(">i", len(frame)) + frame)
        (length,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(length)

    def _exactly(self, count: int) -> bytes:
        received = b""
        while len(received) < count:
            piece = self._broker.recv(count - len(received))
            if not piece:
                raise ConnectionError("the broker has hung up")
            received += piece
        return received


def make_offsets_topic(ports: list[int], admin: Path | None) -> None:
    """Wait until all brokers serve and one knows the coordinator of a group, and say so."""
    asked = struct.pack(">h", len(GROUP)) + GROUP
    for port in ports:
        while True:
            try:
                with Client(port, admin) as client:
                    answer = client.ask(FIND_COORDINATOR, asked)
            except OSError:
                answer = b""
            if answer[:2] == b"\0\0":  # no error
                break
            time.sleep(0.2)
    addresses = ", ".join(f"localhost:{port}" for port in ports)
    show("cluster", f"all brokers ready: {addresses}; Ctrl-C stops them")
    if admin is not None:
        clients = admin.with_suffix(".properties").relative_to(ROOT)
        show("cluster", f"clients get in with {clients}, and see docs/security.md")


def end_on_signals(servers: list[Server]) -> None:
    """Have the first signal end this program, and any later one kill what still runs."""

    def kill(*_: object) -> None:
        for server in servers:
            server.process.kill()

    def end(number: int, _: object) -> None:
        for ending in ENDINGS:
            signal.signal(ending, kill)
        sys.exit(0 if number == signal.SIGINT else 128 + number)

    for ending in ENDINGS:
        signal.signal(ending, end)


def end_all(servers: list[Server]) -> None:
    """One after the other: each hands over what it leads, which together they could not."""
    show("\n  cluster", "stopping one broker after the other; Ctrl-C again kills them")
    for server in reversed(servers):
        server.end()


def broker_configs() -> tuple[list[Path], Path | None]:
    """The brokers' files, as many as the command line asks for, and how an admin gets in."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--brokers", type=int, default=BROKERS, help="how many (default 3)")
    parser.add_argument("--secure", action="store_true", help="TLS, SASL and ACLs")
    options = parser.parse_args()
    count = options.brokers
    if count < BROKERS:
        parser.error(f"--brokers {count}: fewer than {BROKERS} cannot hold topics of 3 replicas")
    configs = [ROOT / "config" / f"server-{number}.properties" for number in range(count)]
    for config in configs:
        if not config.exists():
            parser.error(f"--brokers {count}: there is no {config.relative_to(ROOT)}")
    if not options.secure:
        return configs, None
    script = str(Path(__file__).with_name("secure.py"))
    command = [sys.executable, script, str(SECURE), "--brokers", str(count)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return [SECURE / config.name for config in configs], SECURE / f"{ADMIN}.librdkafka"


def main() -> None:
    """Start everything, wait for Ctrl-C, stop everything."""
    brokers, admin = broker_configs()
    os.chdir(ROOT)
    zookeeper = ROOT / "config" / "zookeeper.properties"
    for config in (zookeeper, *brokers):
        check_free(port_of(config), config)
    servers: list[Server] = []
    end_on_signals(servers)
    try:
        servers.append(Server("zookeeper", zookeeper_command(str(zookeeper))))
        wait_for_port(port_of(zookeeper), servers[0])
        for number, config in enumerate(brokers):
            command = [sys.executable, "-m", "broker", "--config", str(config.relative_to(ROOT))]
            servers.append(Server(f"broker-{number}", command))
        ports = [port_of(config) for config in brokers]
        threading.Thread(target=make_offsets_topic, args=(ports, admin), daemon=True).start()
        signal.pause()
    finally:
        end_all(servers)


if __name__ == "__main__":
    main()
