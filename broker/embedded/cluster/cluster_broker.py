"""One broker of an embedded cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from broker.embedded.controlled_broker import ControlledBroker

if TYPE_CHECKING:
    from broker.embedded.engines.engine import Engine
    from broker.embedded.settings import BrokerSettings


class ClusterBroker(ControlledBroker):
    """Killed, paused and mistreated like a broker that is alone."""

    def __init__(self, settings: BrokerSettings, engine: Engine) -> None:
        self._described = settings
        self._runs_on = engine

    @property
    def broker_id(self) -> int:
        """Its id, by which it stands in the cluster's list, too."""
        return self._described.broker_id

    @property
    def own_port(self) -> int:
        """Port to which other brokers connect."""
        port = self._described.own_port
        assert port is not None
        return port

    def start(self) -> Self:
        """Start it again, after `kill`."""
        self._engine.ask("start")
        return self

    def leads(self, topic: str, partition: int = 0) -> bool:
        """Return whether it leads a partition, as far as it knows."""
        return self.leads_in(topic, partition) >= 0

    def leads_in(self, topic: str, partition: int) -> int:
        """The leader epoch in which it believes to lead; -1 if it does not."""
        epoch: int = self.ask("leads_in", topic, partition)
        return epoch

    def ask(self, operation: str, *arguments: object) -> Any:  # noqa: ANN401 - of whatever it is
        """One of the operations of `hosted_broker`."""
        return self._engine.ask(operation, *arguments)

    def end(self) -> None:
        """End the broker for good."""
        try:
            self._engine.resume()
            self._engine.kill()
        finally:
            self._engine.close()

    @property
    def _engine(self) -> Engine:
        return self._runs_on

    @property
    def _settings(self) -> BrokerSettings:
        return self._described

    def __repr__(self) -> str:
        return f"<broker {self.broker_id} at {self.bootstrap_servers}>"
