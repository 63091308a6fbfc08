"""`zookeeper.connect`: servers, and the path below which this cluster keeps its tree."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv6Address

from config.listeners.addresses import join_address, split_address

DEFAULT_PORT = 2181


class AddressError(ValueError):
    """`zookeeper.connect` is invalid; the text has the reason."""


@dataclass(frozen=True, slots=True)
class ZooKeeperAddress:
    """The servers of the ensemble, and the path of the cluster in its tree."""

    servers: tuple[tuple[str, int], ...]
    root: str = ""
    """Path put in front of every other, without a slash at its end; empty for the whole tree."""

    def __str__(self) -> str:
        return ",".join(join_address(host, port) for host, port in self.servers) + self.root

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
    """Read `host:port,[::1]:port/path`; ports may be left out. Raises AddressError."""
    hosts, slash, path = text.strip().partition("/")
    root = f"/{path}".rstrip("/") if slash else ""
    if "//" in root:
        raise AddressError(f"zookeeper.connect {text!r} has an empty step in its path")
    servers = tuple(_server(text, part.strip()) for part in hosts.split(",") if part.strip())
    if not servers:
        raise AddressError(f"zookeeper.connect {text!r} names no server")
    return ZooKeeperAddress(servers, root)


def _server(text: str, part: str) -> tuple[str, int]:
    has_port = ":" in part and not part.endswith("]")
    try:
        host, port = split_address(part if has_port else f"{part}:{DEFAULT_PORT}")
        if ":" in host:
            IPv6Address(host)
    except ValueError as error:
        raise AddressError(f"zookeeper.connect {text!r}: {error}") from None
    if not host or not port:
        raise AddressError(f"zookeeper.connect {text!r}: {part!r} has no host, or port 0")
    return host, port
