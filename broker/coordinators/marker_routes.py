"""Where requests to write markers go: to brokers by id, of which this one is asked by a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.coordinators.markers import write_markers

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.app import Broker
    from protocol.messages.transactions import WriteTxnMarkersRequest, WriteTxnMarkersResponse


class MarkerRoutes:
    """Leaders as this broker's metadata has them, and the way to them."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def leader(self, topic: str, partition: int) -> int | None:
        """The leader's id, negative if there is none now; None for a partition that is no more."""
        state = self._broker.metadata.partition(topic, partition)
        return None if state is None else state.leader

    def send(
        self,
        broker_id: int,
        request: WriteTxnMarkersRequest,
        answered: Callable[[WriteTxnMarkersResponse | None], None],
    ) -> None:
        """Ask a broker to write markers; `answered(None)` when it cannot be reached."""
        if broker_id != self._broker.config.broker_id:
            answered(None)
            return
        write_markers(self._broker, request).then(answered)
