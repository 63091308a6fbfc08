"""The makers of all requests, by API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.sent_requests import (
    broker_requests,
    group_requests,
    record_requests,
    security_requests,
    topic_requests,
    transaction_requests,
)
from tests.support.sent_requests.broker_requests import AMONG_BROKERS

if TYPE_CHECKING:
    from protocol.api_keys import ApiKey
    from tests.support.sent_requests.about import Maker

OF_CLIENTS: dict[ApiKey, Maker] = {
    **record_requests.MAKERS,
    **group_requests.MAKERS,
    **transaction_requests.MAKERS,
    **topic_requests.MAKERS,
    **broker_requests.MAKERS,
    **security_requests.MAKERS,
}
ALL: dict[ApiKey, Maker] = {**OF_CLIENTS, **AMONG_BROKERS}
