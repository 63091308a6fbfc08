"""Sources of metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.delivery.deliveries import Deliveries
    from broker.key_index.key_index import KeyIndex
    from broker.maintenance.housekeeping import Housekeeping
    from broker.maintenance.log_cleaner import LogCleaner
    from broker.network.authentication.sasl_listener import SaslListener
    from broker.network.listener import Listeners
    from broker.requests.services import BrokerServices
    from broker.runtime.open_files import OpenFiles
    from broker.runtime.supervision import Supervision


class Sources(NamedTuple):
    """Parts of a broker that have metrics."""

    services: BrokerServices
    supervision: Supervision
    open_files: OpenFiles
    listeners: Listeners
    housekeeping: Housekeeping
    cleaner: LogCleaner | None
    """None when nothing is compacted here."""
    authentication: Mapping[str, SaslListener]
    """Of the listeners that have one."""
    key_index: KeyIndex
    deliveries: Deliveries
