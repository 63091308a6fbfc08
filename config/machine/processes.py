"""Configurations of several brokers on one machine, from their one property file. Pure.

Process 0 is the broker that the file describes; the others count up from it::

    broker.id=10                          10, 11, 12, …
    listeners=PLAINTEXT://:9092           9092, 9093, 9094, …; advertised.listeners likewise
    log.dirs=/disk1/kafka,/disk2/kafka    /disk1/kafka/broker10,/disk2/kafka/broker10, …
    broker.rack                           the machine's name, so that replicas go to other machines
    broker.cpus=0-7                       an equal share of the list
    key.index.port=9500                   9500, 9501, 9502, …: each looks up what it leads
    metrics.port=9404                     the supervisor's, which gathers the metrics of all

`broker.process.2.KEY=value` has the last word for process 2. All other keys hold for each of them.
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from config.errors import ConfigError, invalid
from config.listeners.addresses import HIGHEST_PORT
from config.listeners.endpoints import bound_endpoints
from config.machine.cpus import share_of_cpus

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from config.broker import BrokerConfig

_OWN = re.compile(r"broker\.process\.(0|[1-9][0-9]*)\.(.+)")
_STATE = "broker.processes.directory"


class Process(NamedTuple):
    """One of the brokers of a file, counted from 0, and the name of the machine."""

    number: int
    machine: str


def own_key(name: str) -> tuple[int, str] | None:
    """The process and the key of `broker.process.2.KEY`; None for other names."""
    found = _OWN.fullmatch(name)
    return None if found is None else (int(found[1]), found[2])


def state_directory(config: BrokerConfig) -> str:
    """Directory of the locks and sockets of a file's brokers; `config` is of the whole file."""
    return config.broker_processes_directory or f"{config.log_dirs[0].rstrip('/')}/node"


def derived_keys(config: BrokerConfig, process: Process) -> dict[str, str]:
    """Texts of the keys that differ between the brokers of a file, for one of them.

    `config` is of the whole file. Raises ConfigError for a file that cannot be of several.
    """
    _check_file(config)
    broker_id = config.broker_id + process.number
    derived = {"broker.id": str(broker_id)}
    if "node.id" in config.stated:
        derived["node.id"] = str(broker_id)
    for name, texts in (
        ("listeners", config.listeners),
        ("advertised.listeners", config.advertised_listeners),
    ):
        if texts:
            derived[name] = ",".join(_moved(name, text, process.number) for text in texts)
    derived["log.dirs"] = ",".join(log_directories(config, broker_id))
    if config.broker_rack is None:
        derived["broker.rack"] = process.machine
    derived["broker.cpus"] = ",".join(map(str, share_of_cpus(config, process.number)))
    derived["broker.processes.directory"] = state_directory(config)
    derived["status.socket"] = f"{state_directory(config)}/broker{broker_id}.sock"
    derived["status.socket.metrics"] = str(config.metrics_port >= 0).lower()
    derived["metrics.port"] = "-1"
    if config.key_index_port > 0:
        derived["key.index.port"] = _moved_port(
            "key.index.port", str(config.key_index_port), config.key_index_port, process.number
        )
    return derived


def log_directories(config: BrokerConfig, broker_id: int) -> list[str]:
    """Return the log directories of one broker of a file.

    No partition has such a name, so none is mistaken for a log.
    """
    return [f"{path.rstrip('/')}/broker{broker_id}" for path in config.log_dirs]


def check_apart(whole: BrokerConfig, configs: Sequence[BrokerConfig]) -> None:
    """Raise ConfigError if two brokers of a file would use the same port, directory or id."""
    taken: dict[object, str] = {}
    if whole.metrics_port > 0:
        taken[whole.metrics_port] = "the metrics"
    for number, config in enumerate(configs):
        who = f"process {number}"
        for key, value in _claims(config):
            other = taken.setdefault(value, who)
            if other != who:
                text = f"{key}: {other} and {who} would both have {value}"
                raise ConfigError(f"{text}; set broker.process.{number}.{key}", key)
    _refuse_nested(configs)


def _refuse_nested(configs: Sequence[BrokerConfig]) -> None:
    """A log directory has logs and nothing else: Apache Kafka would not open it otherwise."""
    outers = [PurePath(path) for config in configs for path in config.log_dirs]
    state = PurePath(str(configs[0].broker_processes_directory))
    if state in outers:
        raise invalid(_STATE, state, "it is a log directory")
    for key, inner in [("log.dirs", path) for path in outers] + [(_STATE, state)]:
        for outer in outers:
            if outer in inner.parents:
                raise invalid(key, inner, f"it lies in the log directory {outer}")


def _claims(config: BrokerConfig) -> Iterator[tuple[str, object]]:
    """Yield the exclusive settings of a broker: keys and values."""
    yield "broker.id", f"id {config.broker_id}"
    for endpoint in bound_endpoints(config):
        if endpoint.port:
            yield "listeners", endpoint.port
    for path in config.log_dirs:
        yield "log.dirs", PurePath(path)
    if config.key_index_port > 0:
        yield "key.index.port", config.key_index_port
    if config.metrics_port > 0:
        yield "metrics.port", config.metrics_port
    yield "status.socket", config.status_socket


def _check_file(config: BrokerConfig) -> None:
    count = config.broker_processes
    if config.broker_id < 0:
        why = "the brokers of broker.processes count up from it, so it has to be set"
        raise invalid("broker.id", config.broker_id, why)
    if count > 1 and not config.zookeeper_connect:
        why = "several brokers are one cluster through ZooKeeper only: set zookeeper.connect"
        raise ConfigError(
            str(invalid("broker.processes", count, why)), "broker.processes", "zookeeper.connect"
        )


def _moved(key: str, listener: str, by: int) -> str:
    """A listener some ports further on; 0 stays 0, by which the system chooses."""
    address, _, port = listener.rpartition(":")
    return f"{address}:{_moved_port(key, listener, int(port), by) if int(port) else 0}"


def _moved_port(key: str, value: str, port: int, by: int) -> str:
    """Return a port some further on; `value` is the file's text."""
    if port + by > HIGHEST_PORT:
        raise invalid(key, value, f"process {by} would have port {port + by}")
    return str(port + by)
