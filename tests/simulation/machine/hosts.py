"""Whose turn it is: everything that a broker schedules carries its host, and ends with it."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.simulation.cluster import Machine
    from tests.simulation.machine.network import SimulatedServer
    from tests.simulation.machine.sockets import End


@dataclass(eq=False)
class Host:
    """One life of one broker (or a client): killed, nothing of it ever runs again."""

    name: str
    machine: Machine | None = None
    """The machine that it runs on; None for clients."""
    is_dead: bool = False
    is_frozen: bool = False
    frozen_until: float = 0.0
    held: list[Any] = field(default_factory=list)
    """Callbacks that came due while it was frozen."""
    servers: dict[int, SimulatedServer] = field(default_factory=dict)
    ends: dict[End, None] = field(default_factory=dict)
    """Of the connections it has."""


HOST: ContextVar[Host | None] = ContextVar("host", default=None)
"""The host that the running callback belongs to; None for the simulation itself."""
