"""Settings of an embedded broker, and the place of its logs."""

from __future__ import annotations

import dataclasses
import re
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, cast, get_args

from broker.embedded.choices import choice_named
from broker.embedded.errors import EmbeddedBrokerError
from broker.embedded.machine.own_directory import make_own_directory
from broker.embedded.machine.reserved_port import HOST
from config.listeners.addresses import is_every_interface, join_address, split_address
from config.loader import about_unknown_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.embedded.security import Security

Storage = Literal["disk", "memory"]
Isolation = Literal["thread", "process"]
Protocol = Literal["ssl", "sasl_plaintext", "sasl_ssl"]
Value = str | int | float | bool

MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a directory of its own is made in it, for its user alone
"""A file system in memory. Files in it are files: what sends them, maps them or compacts them
in another process works as on a disk, which it would not on a stand-in of ours."""

QUICK: Final[Mapping[str, Value]] = {
    "num.partitions": 1,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "share.coordinator.state.topic.num.partitions": 1,
    "group.initial.rebalance.delay.ms": 0,
    "log.segment.delete.delay.ms": 1_000,
    "max.incremental.fetch.session.cache.slots": 0,
}
"""Apache Kafka's defaults are for servers: fifty partitions of offsets, three seconds of waiting
for a second member. Without fetch sessions each Fetch names its partitions: `broker.requests`
shows them, and faults find them."""

ALONE: Final[Mapping[str, Value]] = {
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
}


@dataclasses.dataclass(frozen=True, slots=True)
class BrokerSettings:
    """One broker's. They can be sent to another process."""

    broker_id: int
    port: int
    directory: Path
    """Holds its property file and, unless `log_dir` says otherwise, its logs."""
    config: dict[str, str]
    """As in a property file, without what follows from the other fields."""
    log_dir: Path | None = None
    own_port: int | None = None
    """Port for the other brokers of a cluster, or for those of a broker with `security`."""
    security: Security | None = None
    """Of clients; None for none."""

    @property
    def properties(self) -> dict[str, str]:
        """All that stands in its property file."""
        return {
            "broker.id": str(self.broker_id),
            "log.dirs": str(self.logs),
            **self._listeners(),
            **({} if self.security is None else self.security.broker_keys),
            **self.config,
        }

    @property
    def logs(self) -> Path:
        """The log directory."""
        return self.log_dir or self.directory / "logs"

    @property
    def bootstrap_server(self) -> str:
        """Bootstrap server for clients: as configured, or else at the port reserved for it."""
        named = self.config.get("advertised.listeners") or self.config.get(LISTENERS)
        if named is None:
            return f"{HOST}:{self.port}"
        host, port = split_address(named.partition(",")[0].partition("://")[2].strip())
        return join_address(HOST if is_every_interface(host) else host, port)

    @property
    def client_config(self) -> dict[str, str]:
        """Configuration for a client of librdkafka."""
        keys = {} if self.security is None else self.security.client_keys
        return {"bootstrap.servers": self.bootstrap_server, **keys}

    @property
    def kafka_python_config(self) -> dict[str, str]:
        """Constructor arguments for a client of kafka-python."""
        keys = {} if self.security is None else self.security.kafka_python_keys
        return {"bootstrap_servers": self.bootstrap_server, **keys}

    @property
    def ports_wanted(self) -> int:
        """Number of ports to choose for it: of its own listeners, or of those with port 0."""
        named = self.config.get(LISTENERS)
        if named is not None:
            return max(1, len(_CHOSEN_PORT.findall(named)))
        return 1 if self.security is None else 2

    def at(self, *ports: int) -> BrokerSettings:
        """The same, at those ports, of which there are `ports_wanted`."""
        config = dict(self.config)
        if LISTENERS in config:
            chosen = iter(ports)
            config[LISTENERS] = _CHOSEN_PORT.sub(lambda _: f":{next(chosen)}", config[LISTENERS])
        own_port = ports[1] if len(ports) > 1 and LISTENERS not in config else None
        return dataclasses.replace(self, port=ports[0], own_port=own_port, config=config)

    def write(self) -> Path:
        """Write the property file; returns its path."""
        path = self.directory / "server.properties"
        lines = [f"{name}={_escaped(text)}\n" for name, text in self.properties.items()]
        path.write_text("".join(lines), encoding="utf-8")
        return path

    def _listeners(self) -> dict[str, str]:
        protocol = "PLAINTEXT" if self.security is None else self.security.protocol
        clients = f"{protocol}://{HOST}:{self.port}"
        if self.own_port is None:
            return {LISTENERS: clients}
        return {
            LISTENERS: f"{clients},{OWN_LISTENER}://{HOST}:{self.own_port}",
            "listener.security.protocol.map": f"{protocol}:{protocol},{OWN_LISTENER}:PLAINTEXT",
            "inter.broker.listener.name": OWN_LISTENER,
        }


LISTENERS: Final = "listeners"
_CHOSEN_PORT: Final = re.compile(r":0+(?=\s*(?:,|$))")
"""Port 0 of a listener: the system chooses one."""

SUPER_USERS: Final = "super.users"
OWN_LISTENER: Final = "BROKERS"
"""Of the listener on which brokers of a cluster talk to each other."""


class Choices(NamedTuple):
    """Options with a fixed set of values, in lower case."""

    storage: Storage
    security: Protocol | None
    isolation: Isolation


def settled_choices(
    storage: object, security: object = None, isolation: object = "thread"
) -> Choices:
    """Take them in any case; refuse what none of them can be. Raises ValueError."""
    is_secured = security is not None
    found = (
        choice_named("storage", storage, get_args(Storage)),
        choice_named("security", security, get_args(Protocol)) if is_secured else None,
        choice_named("isolation", isolation, get_args(Isolation)),
    )
    return Choices(*cast("tuple[Storage, Protocol | None, Isolation]", found))


def check_brokers(brokers: object) -> None:
    """Refuse an invalid number of brokers. Raises TypeError or ValueError."""
    if isinstance(brokers, bool) or not isinstance(brokers, int):
        raise TypeError(f"brokers is a whole number, not {brokers!r}")
    if brokers < 1:
        raise ValueError(f"brokers is at least 1, and not {brokers}")


def warn_of_unknown_keys(config: Mapping[str, Value] | None) -> None:
    """Warn the test of keys that the broker would only log; for constructors called by the test."""
    for name in config or ():
        text = about_unknown_key(name)
        if text is not None:
            warnings.warn(f"config: {text}", stacklevel=3)


def stated(config: Mapping[str, Value] | None) -> dict[str, str]:
    """Configuration of a test, as text for a property file."""
    return {name: _text(value) for name, value in (config or {}).items()}


def with_super_users(config: Mapping[str, str], *users: str) -> dict[str, str]:
    """The same configuration, with users that an authorizer lets do anything, if there is one."""
    all_users = filter(None, [config.get(SUPER_USERS), *users])
    return {**config, SUPER_USERS: ";".join(all_users)}


def secured(protocol: Protocol | None, directory: Path) -> Security | None:
    """Security for clients; its module is imported only if needed."""
    if protocol is None:
        return None
    from broker.embedded.security import make_security  # noqa: PLC0415

    return make_security(protocol, directory)


def make_directory(storage: Storage, name: str) -> Path:
    """An exclusive directory."""
    if storage == "memory" and not MEMORY.is_dir():
        raise EmbeddedBrokerError(f"storage='memory' needs {MEMORY}, which is not there")
    parent = MEMORY if storage == "memory" else Path(tempfile.gettempdir())
    return make_own_directory(parent, name)


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")
