"""`zookeeper.connect`: servers, and the path below which this cluster keeps its tree."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_PORT = 2181
HIGHEST_PORT = 65_535


class AddressError(ValueError):
    """`zookeeper.connect` is invalid; the text has the reason."""


@dataclass(frozen=True, slots=True)
class ZooKeeperAddress:
    """The servers of the ensemble, and the path of the cluster in its tree."""

    servers: tuple[tuple[str, int], ...]
    root: str = ""
    """Path put in front of every other, without a slash at its end; empty for the whole tree."""

    def __str__(self) -> str:
        return ",".join(f"{host}:{port}" for host, port in self.servers) + self.root

    def full(self, path: str) -> str:
        """The path as ZooKeeper has it."""
        return (self.root + path).rstrip("/") or "/"

    def own(self, path: str) -> str:
        """The path as used above the adapter."""
        return path[len(self.root) :] or "/"

    def root_steps(self) -> list[str]:
        """The ancestors of `root` and `root` itself, outermost first."""
        parts = self.root.split("/")[1:]
        return ["/" + "/".join(parts[: count + 1]) for count in range(len(parts))]


def parse_address(text: str) -> ZooKeeperAddress:
    """Read `host:port,host:port/path`; the port may be left out. Raises AddressError."""
    hosts, slash, path = text.strip().partition("/")
    root = f"/{path}".rstrip("/") if slash else ""
    if "//" in root:
        raise AddressError(f"zookeeper.connect {text!r} has an empty step in its path")
    servers = tuple(_server(text, part.strip()) for part in hosts.split(",") if part.strip())
    if not servers:
        raise AddressError(f"zookeeper.connect {text!r} names no server")
    return ZooKeeperAddress(servers, root)


def _server(text: str, part: str) -> tuple[str, int]:
    host, colon, port = part.rpartition(":")
    if not colon or part.endswith("]"):
        host, port = part, str(DEFAULT_PORT)
    if not host or not port.isdecimal() or not 0 < int(port) <= HIGHEST_PORT:
        raise AddressError(f"zookeeper.connect {text!r}: {part!r} is not host:port")
    return host.strip("[]"), int(port)
