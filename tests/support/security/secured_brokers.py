"""Single brokers of each make with secured listeners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.support.brokers.apache import apache_4
from tests.support.brokers.ours import ours
from tests.support.security.listeners import Ports, listener_keys, make_scram_users

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.brokers.broker_process import BrokerProcess
    from tests.support.security.access import Access
    from tests.support.security.realm import Realm

OURS = "ours"
APACHE_4 = "apache"


@dataclass(frozen=True, slots=True)
class SecuredBroker:
    """A broker with a listener for each protocol."""

    process: BrokerProcess
    ports: Ports
    realm: Realm

    def start(self) -> None:
        """Start it, wait until it serves, and have it know the users of SCRAM."""
        self.process.start()
        make_scram_users(self.ports.bootstrap("PLAINTEXT"))

    def bootstrap(self, access: Access) -> str:
        """Return the bootstrap servers for clients with this access."""
        return self.ports.bootstrap(access.protocol)


def secured_broker(
    make: str,
    directory: Path,
    realm: Realm,
    properties: dict[str, str] | None = None,
    *,
    as_its_script_does: bool = False,
) -> SecuredBroker:
    """Return a broker of ours or Apache Kafka 4, not yet started.

    The last is for benchmarks: Apache's JVM gets the flags that its own start script gives it.
    """
    ports = Ports.free()
    keys = {**listener_keys(realm, ports), **(properties or {})}
    if make == OURS:
        process = ours(directory, keys, port=ports.plaintext)
    else:
        process = apache_4(
            directory, keys, port=ports.plaintext, as_its_script_does=as_its_script_does
        )
    return SecuredBroker(process, ports, realm)
