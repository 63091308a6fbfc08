"""The broker's configuration as typed values."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from config.keys.cleaner import CleanerKeys
from config.keys.groups import GroupKeys
from config.keys.identity import IdentityKeys
from config.keys.key_index import KeyIndexKeys
from config.keys.kraft import KraftKeys
from config.keys.logs import LogKeys
from config.keys.metrics import MetricKeys
from config.keys.network import NetworkKeys
from config.keys.oauth import OauthKeys
from config.keys.offsets import OffsetKeys
from config.keys.own import OwnKeys
from config.keys.processes import ProcessKeys
from config.keys.producers import ProducerKeys
from config.keys.quotas import QuotaKeys
from config.keys.replication import ReplicationKeys
from config.keys.sasl import SaslKeys
from config.keys.security import SecurityKeys
from config.keys.share import ShareKeys
from config.keys.streams import StreamsKeys
from config.keys.throttles import ThrottleKeys
from config.keys.tiered import TieredKeys
from config.keys.tls import TlsKeys
from config.keys.topics import TopicKeys
from config.keys.transactions import TransactionKeys
from config.keys.zookeeper import ZooKeeperKeys
from config.passwords.providers import ConfigProviders
from config.synonyms import topic_defaults

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config.key import Value
    from config.topic import TopicConfig


@dataclass(frozen=True, slots=True, kw_only=True, init=False, repr=False, eq=False)
class BrokerConfig(
    CleanerKeys,
    GroupKeys,
    IdentityKeys,
    KeyIndexKeys,
    KraftKeys,
    LogKeys,
    MetricKeys,
    NetworkKeys,
    OauthKeys,
    OffsetKeys,
    OwnKeys,
    ProcessKeys,
    ProducerKeys,
    QuotaKeys,
    ReplicationKeys,
    SaslKeys,
    SecurityKeys,
    ShareKeys,
    StreamsKeys,
    ThrottleKeys,
    TieredKeys,
    TlsKeys,
    TopicKeys,
    TransactionKeys,
    ZooKeeperKeys,
):
    """Configuration of a broker; `BrokerConfig()` has Apache Kafka's defaults.

    One attribute per key of `server.properties`, underscores for dots; its rows: `config.keys`.
    """

    stated: Mapping[str, str] = field(default_factory=dict)
    """Names and texts in the property file and on the command line, unknown names included."""
    places: Mapping[str, str] = field(default_factory=dict)
    """File and line, or option, of each name of `stated`."""
    providers: ConfigProviders = field(default_factory=ConfigProviders)
    """Resolve variables in values, dynamic ones too."""

    def __init__(self, **values: object) -> None:
        """Take values of keys, and defaults for all others. Raises TypeError for unknown names.

        Not written by `dataclass`: each process would compile 460 parameters when it starts.
        """
        for one in dataclasses.fields(self):
            value = values.pop(one.name, one.default)
            if value is dataclasses.MISSING:
                assert one.default_factory is not dataclasses.MISSING, one.name
                value = one.default_factory()
            object.__setattr__(self, one.name, value)
        if values:
            raise TypeError(f"BrokerConfig has no {', '.join(sorted(values))}")

    def value_of(self, name: str) -> Value:
        """Look up the typed value of a key by its name in `server.properties`."""
        value: Value = getattr(self, name.replace(".", "_"))
        return value

    def topic_defaults(self) -> TopicConfig:
        """Build the configuration of a topic that overrides nothing."""
        return topic_defaults(self.value_of)

    def identified(self, broker_id: int) -> BrokerConfig:
        """Say under both its names which broker it is, whether a user chose the id or not."""
        names = dict.fromkeys(("broker.id", "node.id"), str(broker_id))
        return dataclasses.replace(
            self, broker_id=broker_id, node_id=broker_id, stated={**self.stated, **names}
        )
