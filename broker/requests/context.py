"""The circumstances of a request, for its handler."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.network.client import Client
    from broker.requests.long_requests import Remains
    from broker.requests.request_meter import RequestMeter
    from broker.requests.services import BrokerServices


@dataclasses.dataclass(slots=True)
class Context:
    """The circumstances of one request. Do not keep it past the answer."""

    broker: BrokerServices
    api_version: int
    client_id: str | None
    listener: str
    """The client's listener: metadata is answered with endpoints of that listener."""
    client_host: str
    """Peer address with a leading slash, as Kafka shows it."""
    principal: str
    now_ms: int
    """Wall clock when the request was read, in milliseconds since the epoch."""
    is_long: bool = False
    """Set if others were served while it was read or handled; they are until its answer, then."""
    meter: RequestMeter | None = None
    """Charges the request to its client's quotas; None while none is set."""
    held: object = None
    """Counts the elements of a long request until this context is freed (`ElementBudget`)."""
    remains: Remains | None = None
    """Has a long request and its answer freed in slices, once this context is freed."""
    api_key: int = -1
    """The request's, for the audit log."""
    client: Client | None = None
    """The other end of the connection, for what ends with that."""
