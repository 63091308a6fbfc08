"""Name of this program, and commands that start parts of it as processes of their own.

The directory that a broker was started in may hold a user's `queue.py` or `storage/`. A process
that we start never looks for modules there (`-P`); its environment tells it where our code is.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

COMMAND: Final = "kafka-broker-python"
"""The command that an installation brings."""
SERVICE_MANAGER: Final = frozenset({"NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"})
"""Environment variables by which a process reports its state to systemd."""
PREFIX: Final = __name__.removesuffix("config.machine.own_program")
"""Package prefix of our modules: empty, unless they are installed."""
CODE: Final = Path(__file__).resolve().parents[__name__.count(".")]
"""The entry of `sys.path` below which our modules are."""


def module_command(module: str, *arguments: str) -> tuple[str, ...]:
    """The command line that runs a module of ours, given by its `__name__`."""
    return (sys.executable, "-P", "-m", module, *arguments)


def environment(environ: Mapping[str, str], code: Path = CODE) -> dict[str, str]:
    """The environment in which `module_command` finds the module.

    This process alone reports to the service manager, not its children.
    """
    environ = {name: text for name, text in environ.items() if name not in SERVICE_MANAGER}
    if str(code) in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        return environ  # every Python of this installation looks there
    places = [str(code), environ.get("PYTHONPATH", "")]
    return {**environ, "PYTHONPATH": os.pathsep.join(filter(None, places))}


def usage_name(module: str) -> str:
    """Return the command that runs a module of ours, as this process was run: for messages."""
    name = module.removeprefix(PREFIX)
    if Path(sys.argv[0]).name != COMMAND:
        return f"python -m {name}"
    room = name.partition(".")[2]
    return f"{COMMAND} {word_of(room)}" if room else COMMAND


def word_of(room: str) -> str:
    """The first argument of the command that stands for a room of the broker."""
    return room.replace("_", "-")
