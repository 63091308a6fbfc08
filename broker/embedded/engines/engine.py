"""The port between a broker as a test sees it and wherever that broker runs."""

from __future__ import annotations

from typing import Any, Final, Protocol

DISMISS: Final = "dismiss"
"""What a process is told last that a broker runs in."""


class Engine(Protocol):
    """Carries operations of `HostedBroker` to it, by name."""

    @property
    def is_paused(self) -> bool:
        """Whether the broker does nothing, until `resume`."""
        ...

    def ask(self, operation: str, *arguments: object) -> Any:  # noqa: ANN401 - of whatever it is
        """Do it and return what it returns. Raises what it raises, and EmbeddedBrokerError."""
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
