"""The port between a broker as a test sees it and wherever that broker runs."""

from __future__ import annotations

from typing import Any, Final, Protocol

DISMISS: Final = "dismiss"
"""Last message to the process of a broker."""


class Engine(Protocol):
    """Carries operations of `HostedBroker` to it, by name."""

    @property
    def is_paused(self) -> bool:
        """True if the broker is suspended, until `resume`."""
        ...

    def ask(self, operation: str, *arguments: object) -> Any:  # noqa: ANN401 - of whatever it is
        """Carry out an operation; return its result, or raise its error or EmbeddedBrokerError."""
        ...

    def kill(self) -> None:
        """End the broker at once."""
        ...

    def pause(self) -> None:
        """Have it do nothing, with its connections open."""
        ...

    def resume(self) -> None:
        """Have it go on."""
        ...

    def close(self) -> None:
        """The broker has stopped: leave nothing behind of where it ran."""
        ...
