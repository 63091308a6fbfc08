"""A node as its property file has it: the keys that formatting needs, read by Apache Kafka's rules.

All keys of the file are parsed as for a broker, so that a value of the wrong type is refused here
and not when the node starts.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from broker.storage.node_listeners import CONTROLLER, NAMES, read_node_listeners
from config import properties
from config.broker import BrokerConfig
from config.catalogue import BROKER_KEYS
from config.errors import ConfigError, invalid
from config.listeners.addresses import split_address
from config.passwords.providers import read_providers
from config.values import parse_value, split_list

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config.key import Value

VOTERS: Final = "controller.quorum.voters"
SERVERS: Final = "controller.quorum.bootstrap.servers"
ROLES: Final = "process.roles"


@dataclass(frozen=True, slots=True)
class Node:
    """Everything of a property file that formatting depends on."""

    node_id: int
    roles: frozenset[str]
    log_dirs: tuple[str, ...]
    """All directories to format, that of the metadata log too, each once and in order."""
    metadata_log_dir: str
    has_static_voters: bool
    """True if `controller.quorum.voters` names the controllers."""
    controller_listener: str
    """The first of `controller.listener.names`."""
    controller_address: tuple[str, int] | None
    """Host and port of that listener, host empty for this machine; None on a broker."""
    has_unstable_features: bool = False

    @property
    def is_controller(self) -> bool:
        """True if this node is a member of the quorum."""
        return CONTROLLER in self.roles


def read_node(path: str, environment: Mapping[str, str]) -> Node:
    """Read a property file; raise ConfigError for what no node starts with."""
    config = _read_config(path, environment)
    roles = _roles(config)
    node_id = _node_id(config)
    if not config.controller_listener_names:
        raise ConfigError(f"{NAMES} is missing", NAMES)
    names, address = read_node_listeners(config, roles)
    voters = _voters(config, node_id, roles)
    log_dirs = config.log_dirs or split_list(config.log_dir)
    metadata_log_dir = config.metadata_log_dir or log_dirs[0]
    return Node(
        node_id,
        roles,
        tuple(sorted({*log_dirs, metadata_log_dir})),
        metadata_log_dir,
        has_static_voters=bool(voters),
        controller_listener=names[0],
        controller_address=address,
        has_unstable_features=config.unstable_feature_versions_enable,
    )


def _read_config(path: str, environment: Mapping[str, str]) -> BrokerConfig:
    try:
        entries = properties.parse(Path(path).read_text(encoding=properties.ENCODING))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except properties.MalformedFileError as error:
        raise ConfigError(f"{path}:{error.line}: {error.why}") from None
    written = {entry.name: entry.value for entry in entries}
    providers = read_providers(written, environment)
    stated = {name: providers.resolve(text) for name, text in written.items()}
    values: dict[str, Value] = {}
    for name, text in stated.items():
        if name in BROKER_KEYS:
            _, attribute, key = BROKER_KEYS[name]
            values[attribute] = parse_value(name, key, text)
    if "log.dirs" in stated and not values["log_dirs"]:
        raise invalid("log.dirs", stated["log.dirs"], "it must not be empty")
    return BrokerConfig(stated=stated, providers=providers, **values)


def _roles(config: BrokerConfig) -> frozenset[str]:
    if not config.process_roles:
        raise ConfigError(
            f"{ROLES} is missing: only nodes of a Raft quorum have directories to format", ROLES
        )
    return frozenset(config.process_roles)


def _node_id(config: BrokerConfig) -> int:
    ids = {
        name: value
        for name, value in (("node.id", config.node_id), ("broker.id", config.broker_id))
        if name in config.stated
    }
    if not ids:
        raise ConfigError("node.id is missing", "node.id")
    if len(set(ids.values())) > 1:
        raise ConfigError("node.id and broker.id must be equal; leave out broker.id", *ids)
    name, value = ids.popitem()
    if value < 0:
        raise invalid(name, value, "it must be at least 0")
    return value


def _voters(config: BrokerConfig, node_id: int, roles: frozenset[str]) -> frozenset[int]:
    """Ids in `controller.quorum.voters`."""
    voters = frozenset(_voter_id(text) for text in config.controller_quorum_voters)
    for server in config.controller_quorum_bootstrap_servers:
        _check_address(SERVERS, server, server)
    if not voters and not config.controller_quorum_bootstrap_servers:
        raise ConfigError(f"the quorum is missing: set {SERVERS}, or {VOTERS}", SERVERS, VOTERS)
    shown = ",".join(config.controller_quorum_voters)
    if CONTROLLER in roles:
        if voters and node_id not in voters:
            raise invalid(VOTERS, shown, f"this controller, {node_id}, must be one of them")
    elif node_id in voters:
        raise invalid(VOTERS, shown, f"{node_id} is this node, which is no controller")
    elif config.controller_quorum_auto_join_enable:
        key = "controller.quorum.auto.join.enable"
        raise invalid(key, "true", "only a controller can join the quorum")
    return voters


def _voter_id(text: str) -> int:
    number, separator, address = text.partition("@")
    if not separator or not (number.isascii() and number.isdigit()):
        raise invalid(VOTERS, text, "a voter is written id@host:port")
    _check_address(VOTERS, text, address)
    return int(number)


def _check_address(key: str, shown: str, address: str) -> None:
    try:
        split_address(address)
    except ValueError as error:
        raise invalid(key, shown, str(error)) from None
