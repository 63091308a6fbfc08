"""Configurations and client quotas in the image, and the changes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from controller.image.map_delta import NestedMapDelta
from protocol.metadata_log.log_records import ConfigRecord
from protocol.metadata_log.security_records import ClientQuotaRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TOPIC: Final = 2
BROKER: Final = 4


class ConfigResource(NamedTuple):
    """A resource that has configurations of its own."""

    type: int
    """2 topic, 4 broker, 16 client metrics, 32 group."""
    name: str
    """Empty for the default of all brokers."""


QuotaEntity = tuple[tuple[str, str | None], ...]
"""Type and name of each part of a quota entity, ordered by type; None is the default name."""


class ConfigsDelta(NestedMapDelta[ConfigResource, str, str]):
    """Changes of configurations, by resource.

    A value that is set again is a change: to a broker it means that files are to be read again
    (KAFKA-14136).
    """

    __slots__ = ()

    def replay(self, record: ConfigRecord) -> None:
        """Replay ConfigRecord."""
        values = self.of(ConfigResource(record.resource_type, record.resource_name))
        if record.value is None:
            values.remove(record.name)
        else:
            values.set(record.name, record.value)

    def remove_topic(self, name: str) -> None:
        """Remove the configuration of a topic that was deleted."""
        self.remove(ConfigResource(TOPIC, name))


class ClientQuotasDelta(NestedMapDelta[QuotaEntity, str, float]):
    """Changes of client quotas, by entity."""

    __slots__ = ()

    def replay(self, record: ClientQuotaRecord) -> None:
        """Replay ClientQuotaRecord."""
        parts = {part.entity_type: part.entity_name for part in record.entity}
        limits = self.of(tuple(sorted(parts.items(), key=lambda part: part[0])))
        if record.remove:
            limits.remove(record.key)
        else:
            limits.set(record.key, record.value)


def config_records(configs: Mapping[ConfigResource, Mapping[str, str]]) -> Iterator[ConfigRecord]:
    """The records of a snapshot."""
    for resource, values in configs.items():
        for name, value in values.items():
            yield ConfigRecord(
                resource_type=resource.type, resource_name=resource.name, name=name, value=value
            )


def client_quota_records(
    quotas: Mapping[QuotaEntity, Mapping[str, float]],
) -> Iterator[ClientQuotaRecord]:
    """The records of a snapshot."""
    for entity, limits in quotas.items():
        for key, value in limits.items():
            parts = [
                ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name)
                for kind, name in entity
            ]
            yield ClientQuotaRecord(entity=parts, key=key, value=value, remove=False)
