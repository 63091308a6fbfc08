"""Everything that a node's property file says: of the machine, and of each of its brokers."""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import broker
from config.errors import ConfigError, invalid
from config.loader import load_broker_config
from config.machine.own_program import module_command
from config.machine.processes import Process, check_apart, log_directories, state_directory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from config.broker import BrokerConfig

META_PROPERTIES: Final = "meta.properties"
_DIRECTORY_OF_BROKER: Final = re.compile(r"broker([0-9]+)")


@dataclass(frozen=True, slots=True)
class MemberPlan:
    """One broker: which it is, how it is started, where it is found."""

    process: int
    config: BrokerConfig
    command: tuple[str, ...]

    @property
    def broker_id(self) -> int:
        """Its id in the cluster."""
        return self.config.broker_id

    @property
    def lock(self) -> str:
        """The file that it holds locked while it lives."""
        return lock_of(self.config)

    @property
    def socket(self) -> str:
        """Path of its status socket."""
        assert self.config.status_socket is not None
        return self.config.status_socket


@dataclass(frozen=True, slots=True)
class NodePlan:
    """The machine and its brokers."""

    config: BrokerConfig
    """Of the file as a whole."""
    members: tuple[MemberPlan, ...]
    warnings: tuple[str, ...]

    @property
    def directory(self) -> str:
        """Directory of locks and sockets."""
        return state_directory(self.config)

    @property
    def lock(self) -> str:
        """The file that the supervisor holds locked."""
        return f"{self.directory}/node.lock"

    @property
    def socket(self) -> str:
        """Path of the supervisor's status socket."""
        return f"{self.directory}/node.sock"


def lock_of(config: BrokerConfig) -> str:
    """The file that a broker of a node holds locked while it lives."""
    return f"{config.broker_processes_directory}/broker{config.broker_id}.lock"


def this_process(number: int) -> Process:
    """A process on this machine."""
    return Process(number, socket.gethostname())


def read_plan(path: str, overrides: Sequence[str], log_level: str = "INFO") -> NodePlan:
    """Read the file for the machine and each broker.

    Raises ConfigError; the same error of several brokers is reported once.
    """
    whole, warnings = load_broker_config(path, overrides, os.environ)
    members, problems = [], dict[str, None]()
    told = dict.fromkeys(warnings)
    for number in range(whole.broker_processes):
        try:
            config, more = load_broker_config(path, overrides, os.environ, this_process(number))
        except ConfigError as problem:
            problems.update(dict.fromkeys(str(problem).splitlines()))
            continue
        told.update(dict.fromkeys(more))
        command = _command(path, overrides, log_level, number)
        members.append(MemberPlan(number, config, command))
    if problems:
        raise ConfigError("\n".join(problems))
    check_apart(whole, [member.config for member in members])
    _refuse_directories_in_use(whole, members)
    warnings = [*told, *_left_over(whole, members)]
    return NodePlan(whole, tuple(members), tuple(warnings))


def _command(path: str, overrides: Sequence[str], log_level: str, number: int) -> tuple[str, ...]:
    words = ["--config", path, "--process", str(number), "--log-level", log_level]
    for override in overrides:
        words += ["--override", override]
    return module_command(broker.__name__, *words)


def _refuse_directories_in_use(whole: BrokerConfig, members: Sequence[MemberPlan]) -> None:
    """A directory of a broker that ran alone has logs, which none of these would look for."""
    used = {path.rstrip("/") for member in members for path in member.config.log_dirs}
    for path in whole.log_dirs:
        if path.rstrip("/") not in used and (Path(path) / META_PROPERTIES).exists():
            wanted = log_directories(whole, whole.broker_id)[whole.log_dirs.index(path)]
            why = (
                f"it is the log directory of one broker, which none of these would be: "
                f"move what is in it to {wanted}, or name it in broker.process.0.log.dirs"
            )
            raise invalid("log.dirs", path, why)


def _left_over(whole: BrokerConfig, members: Sequence[MemberPlan]) -> list[str]:
    """Lines about directories of brokers that are no longer in the file."""
    used = {path.rstrip("/") for member in members for path in member.config.log_dirs}
    return [
        f"{entry}: this broker is not in the file; its logs are left alone"
        for path in whole.log_dirs
        if Path(path).is_dir()
        for entry in sorted(Path(path).iterdir())
        if _DIRECTORY_OF_BROKER.fullmatch(entry.name)
        and (entry / META_PROPERTIES).exists()
        and str(entry) not in used
    ]
