"""Run ZooKeeper and three brokers on this machine until Ctrl-C: `make cluster`.

Each line of output has its server's name in front. When one server ends the others go on, so that
killing a broker shows what a cluster is for; Ctrl-C ends the brokers first and ZooKeeper last.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
ZOOKEEPER = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
CLASS_PATH = "/usr/share/java/slf4j-simple.jar:/usr/share/java/zookeeper.jar"
START_SECONDS = 30.0
STOP_SECONDS = 60.0
BROKERS = 3


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
            print(f"{self.name:>9} | {line}", end="", flush=True)
        code = self.process.wait()
        print(f"{self.name:>9} | ended with exit code {code}", flush=True)

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
    """`clientPort` of ZooKeeper's file."""
    for line in config.read_text().splitlines():
        if line.startswith("clientPort="):
            return int(line.partition("=")[2])
    sys.exit(f"cluster: {config} has no clientPort")


def main() -> None:
    """Start everything, wait for Ctrl-C, stop everything."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--brokers", type=int, default=BROKERS, help="how many (default 3)")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    servers: list[Server] = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        config = ROOT / "config" / "zookeeper.properties"
        servers.append(Server("zookeeper", zookeeper_command(str(config))))
        wait_for_port(port_of(config), servers[0])
        for number in range(arguments.brokers):
            file = f"config/server-{number}.properties"
            command = [sys.executable, "-m", "broker", "--config", file]
            servers.append(Server(f"broker-{number}", command))
        signal.pause()
    except KeyboardInterrupt:
        print(flush=True)
    finally:
        stopping = [threading.Thread(target=server.end) for server in servers[1:]]
        for thread in stopping:
            thread.start()
        for thread in stopping:
            thread.join()
        for server in servers[:1]:
            server.end()


if __name__ == "__main__":
    main()
