"""Metrics of each partition: a page of its own, because of its size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from broker.metrics.collector import steadily

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker.requests.services import BrokerServices
    from storage.log.log import Log

_NUMBERS: tuple[tuple[str, str, Callable[[Log], int]], ...] = (
    ("kafka_log_log_size", "Bytes of the log", lambda log: log.size_in_bytes),
    ("kafka_log_log_numlogsegments", "Segments", lambda log: len(log.segments)),
    ("kafka_log_log_logstartoffset", "First offset", lambda log: log.log_start_offset),
    ("kafka_log_log_logendoffset", "Offset of the next record", lambda log: log.log_end_offset),
    ("kafka_log_log_highwatermark", "First offset not committed", lambda log: log.high_watermark),
    (
        "kafka_cluster_partition_laststableoffsetlag",
        "Committed offsets held back by open transactions",
        lambda log: log.high_watermark - log.last_stable_offset,
    ),
)


class PartitionCollector(Collector):
    """Sizes and offsets of every replica held here."""

    def __init__(self, broker: BrokerServices) -> None:
        self._broker = broker

    def collect(self) -> list[Metric]:
        """Read all logs."""
        return steadily(self._families)

    def _families(self) -> Iterator[Metric]:
        logs = [
            (topic, str(index), partition)
            for topic, partitions in list(self._broker.replicas.by_topic.items())
            for index, partition in list(partitions.items())
        ]
        labels = ["topic", "partition"]
        for name, text, read in _NUMBERS:
            family = GaugeMetricFamily(name, text, labels=labels)
            for topic, index, partition in logs:
                family.add_metric([topic, index], read(partition.log))
            yield family
        text = "1 where in-sync replicas are missing"
        family = GaugeMetricFamily("kafka_cluster_partition_underreplicated", text, labels=labels)
        for topic, index, partition in logs:
            is_short = len(partition.in_sync_replicas) < len(partition.replicas)
            family.add_metric([topic, index], int(partition.is_leader and is_short))
        yield family
