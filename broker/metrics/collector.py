"""Metrics of the whole broker: read from its parts at each scrape, on any thread.

The parts go on working meanwhile. Single numbers are read as they are; dictionaries are copied
first, and if one grows just then, all is read again.
"""

from __future__ import annotations

from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING

from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from broker.metrics.authentications import authentications
from broker.metrics.records_in import RecordsIn
from broker.metrics.request_counts import BOUNDS_SECONDS, SECOND_NS, RequestCounts
from broker.metrics.throttles import throttles
from compiled.activation import activation
from coordinator.groups.states import GroupState
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from broker.delivery.deliveries import Deliveries
    from broker.key_index.key_index import KeyIndex
    from broker.maintenance.log_cleaner import LogCleaner
    from broker.metrics.sources import Sources
    from broker.share_partitions.share_partitions import SharePartitions

ATTEMPTS = 10
"""Maximum number of attempts at a reading that is disturbed by changes of its source."""

_BOUNDS = [*map(str, BOUNDS_SECONDS), "+Inf"]
_REQUEST = "kafka_network_requestmetrics_"


def steadily(read: Callable[[], Iterable[Metric]]) -> list[Metric]:
    """Read all, again if the source grew meanwhile."""
    for _ in range(ATTEMPTS):
        try:
            return list(read())
        except RuntimeError:  # a dictionary changed size during iteration
            continue
    return list(read())


class BrokerCollector(Collector):
    """All metrics but those of each partition."""

    def __init__(self, sources: Sources, counts: Mapping[int, RequestCounts]) -> None:
        self._broker = sources.services
        self._supervision = sources.supervision
        self._open_files = sources.open_files
        self._listeners = sources.listeners
        self._authentication = sources.authentication
        self._housekeeping, self._cleaner = sources.housekeeping, sources.cleaner
        self._key_index = sources.key_index
        self._deliveries = sources.deliveries
        self._counts = counts
        self._records_in = RecordsIn()

    def collect(self) -> list[Metric]:
        """Read all parts."""
        return [*steadily(self._requests), *steadily(self._state)]

    # Requests

    def _requests(self) -> Iterator[Metric]:
        served = {_name_of(key): counts for key, counts in self._counts.items() if counts.requests}
        yield from _request_counters(served)
        yield _request_times(served)
        produced, fetched = self._counts[ApiKey.PRODUCE], self._counts[ApiKey.FETCH]
        topics = "kafka_server_brokertopicmetrics_"
        yield _counter(f"{topics}bytesin", "Bytes of Produce requests", produced.request_bytes)
        yield _counter(f"{topics}bytesout", "Bytes of Fetch answers", fetched.response_bytes)

    # State

    def _state(self) -> Iterator[Metric]:
        yield from self._topics()
        yield from self._replicas()
        yield from self._cluster()
        yield from self._connections()
        yield from authentications(self._authentication)
        yield from throttles(self._broker.quotas)
        yield from self._groups()
        yield from _share_groups(self._broker.share_partitions)
        yield from self._upkeep()

    def _topics(self) -> Iterator[Metric]:
        family = CounterMetricFamily(
            "kafka_server_brokertopicmetrics_messagesin",
            "Records appended to partitions led here, since metrics were first asked for",
            labels=["topic"],
        )
        for topic, records in self._records_in.totals(self._broker.replicas.by_topic).items():
            family.add_metric([topic], records)
        yield family

    def _replicas(self) -> Iterator[Metric]:
        partitions = [
            partition
            for of_topic in list(self._broker.replicas.by_topic.values())
            for partition in list(of_topic.values())
        ]
        led = [partition for partition in partitions if partition.is_leader]
        short = [one for one in led if len(one.in_sync_replicas) < len(one.replicas)]
        below = [
            one for one in led if len(one.in_sync_replicas) < one.log.config.min_insync_replicas
        ]
        failed = [one for one in partitions if one.log.directory.failure is not None]
        name = "kafka_server_replicamanager_"
        yield _gauge(f"{name}partitioncount", "Replicas held here", len(partitions))
        yield _gauge(f"{name}leadercount", "Partitions led here", len(led))
        text = "Partitions led here that lack in-sync replicas"
        yield _gauge(f"{name}underreplicatedpartitions", text, len(short))
        text = "Partitions led here with fewer in-sync replicas than min.insync.replicas"
        yield _gauge(f"{name}underminisrpartitioncount", text, len(below))
        text = "Replicas here in log directories that failed"
        yield _gauge(f"{name}offlinereplicacount", text, len(failed))

    def _cluster(self) -> Iterator[Metric]:
        broker = self._broker
        is_active = broker.controller.is_active
        topics = list(broker.metadata.topics.values()) if is_active else []
        states = [state for topic in topics for state in list(topic.partitions.values())]
        leaderless = sum(state.leader < 0 for state in states)
        name = "kafka_controller_kafkacontroller_"
        yield _gauge(f"{name}activecontrollercount", "1 on the controller", int(is_active))
        text = "Partitions without a leader; only on the controller"
        yield _gauge(f"{name}offlinepartitionscount", text, leaderless)
        yield _gauge(f"{name}globaltopiccount", "Topics; only on the controller", len(topics))
        text = "Partitions; only on the controller"
        yield _gauge(f"{name}globalpartitioncount", text, len(states))

    def _connections(self) -> Iterator[Metric]:
        family = GaugeMetricFamily(
            "kafka_server_socketservermetrics_connection_count",
            "Open connections",
            labels=["listener"],
        )
        for listener, count in self._listeners.open_connections().items():
            family.add_metric([listener], count)
        yield family
        yield _counter(
            "kafka_server_socketservermetrics_connection_creation",
            "Connections accepted",
            self._listeners.accepted_count,
        )
        yield _counter(
            "kafka_server_socketservermetrics_connection_refusals",
            "Connections refused for want of file descriptors",
            self._open_files.refused_connections,
        )
        yield _gauge(
            "kafka_server_fetchsessioncache_numincrementalfetchsessions",
            "Fetch sessions",
            len(self._broker.fetch_sessions),
        )
        yield _counter(
            "kafka_server_fetchsessioncache_incrementalfetchsessionevictions",
            "Fetch sessions that gave way to others",
            self._broker.fetch_sessions.evicted_count,
        )

    def _groups(self) -> Iterator[Metric]:
        states: Counter[GroupState] = Counter()
        members = 0
        for shard in list(self._broker.groups.active_shards()):
            found = (shard.groups.find(name) for name in list(shard.groups.group_ids))
            for group in found:
                if group is not None:
                    states[group.state] += 1
                    members += len(group.members)
        name = "kafka_coordinator_group_groupmetadatamanager_"
        family = GaugeMetricFamily(f"{name}numgroups", "Groups coordinated here", labels=["state"])
        for state in GroupState:
            if state is not GroupState.DEAD:
                family.add_metric([state.value], states[state])
        yield family
        yield _gauge(f"{name}nummembers", "Members of those groups", members)

    def _upkeep(self) -> Iterator[Metric]:
        directories = self._broker.logs.directories
        failed = sum(directory.failure is not None for directory in directories)
        name = "kafka_log_logmanager_"
        text = "Log directories that failed"
        yield _gauge(f"{name}offlinelogdirectorycount", text, failed)
        text = "Requests on logs that failed for want of file descriptors or memory"
        yield _counter(f"{name}exhaustions", text, self._open_files.exhaustions)
        text = "Files that retention gave up"
        yield _counter(f"{name}expiredfiles", text, self._housekeeping.expired_files)
        if self._cleaner is not None:
            yield from _cleaning(self._cleaner)
        yield from _key_index(self._key_index)
        yield from _delivery(self._deliveries)
        family = CounterMetricFamily(
            "kafka_server_backgroundtasks_failures",
            "Errors of the broker's own tasks that nobody foresaw; the tasks go on",
            labels=["task"],
        )
        for task, failures in dict(self._supervision.failures).items():
            family.add_metric([task], failures)
        yield family
        text = "What this broker is made of"
        yield InfoMetricFamily("kafka_server_build", text, {"compiled": activation().answer})


def _cleaning(cleaner: LogCleaner) -> Iterator[Metric]:
    name = "kafka_log_logcleaner_"
    counts = cleaner.counts
    yield _counter(f"{name}cleanings", "Logs compacted", counts.cleanings)
    text = "Bytes of compacted logs before"
    yield _counter(f"{name}bytesbefore", text, counts.bytes_before)
    text = "Bytes of compacted logs afterwards"
    yield _counter(f"{name}bytesafter", text, counts.bytes_after)
    text = "Logs that are not compacted any more, as that fails"
    yield _gauge(f"{name}uncleanablepartitionscount", text, counts.uncleanable_logs)


def _key_index(key_index: KeyIndex) -> Iterator[Metric]:
    name = "kafka_log_keyindex_"
    built = key_index.indexer.counts
    yield _counter(f"{name}segments", "Segments indexed by key", built.built)
    yield _counter(f"{name}failures", "Times that a segment could not be indexed", built.failed)
    yield _counter(f"{name}logbytes", "Bytes of logs read to index them", built.bytes_read)
    yield _counter(f"{name}bytes", "Bytes of indexes written", built.bytes_written)
    text = "Closed segments that had no key index when it was last looked"
    yield _gauge(f"{name}waitingsegments", text, built.waiting)
    found = key_index.counts
    if found is not None:
        yield _counter(f"{name}lookups", "Look-ups by key answered", found.lookups)
        yield _counter(f"{name}refusals", "Look-ups by key refused, or failed", found.refused)
        yield _counter(f"{name}records", "Records that look-ups by key gave", found.records)
        yield _counter(f"{name}lookupbytes", "Bytes of logs read to look up", found.bytes_read)


def _delivery(deliveries: Deliveries) -> Iterator[Metric]:
    name = "kafka_log_delivery_"
    text = "Records that wait to be delivered, in partitions that this broker leads"
    yield _gauge(f"{name}waitingrecords", text, len(deliveries))
    text = "Dead letters that have not arrived yet, of partitions that this broker leads"
    yield _gauge(f"{name}deadletters", text, deliveries.dead_letters)


def _share_groups(shares: SharePartitions) -> Iterator[Metric]:
    name = "kafka_server_sharesessioncache_"
    text = "Sessions of members of share groups"
    yield _gauge(f"{name}sharesessionscount", text, len(shares.sessions))
    name = "kafka_server_sharepartitionmetrics_"
    text = "Partitions led here from which share groups read, once for each group"
    yield _gauge(f"{name}sharepartitions", text, len(shares))
    text = "Records that share groups were given and that are not finished, with those among them"
    yield _gauge(f"{name}inflightmessagecount", text, shares.records_in_flight)


def _request_counters(served: Mapping[str, RequestCounts]) -> Iterator[Metric]:
    numbers: tuple[tuple[str, str, Callable[[RequestCounts], float]], ...] = (
        ("requests", "Requests", lambda counts: counts.requests),
        ("requestbytes", "Bytes of requests", lambda counts: counts.request_bytes),
        ("responsebytes", "Bytes of answers", lambda counts: counts.response_bytes),
        (
            "localtime_seconds",
            "Time in which requests kept the event loop",
            lambda counts: counts.local_ns / SECOND_NS,
        ),
    )
    for name, text, read in numbers:
        family = CounterMetricFamily(f"{_REQUEST}{name}", text, labels=["request"])
        for request, counts in served.items():
            family.add_metric([request], read(counts))
        yield family
    text = "Errors answered: per partition of Produce and Fetch, per request of others"
    errors = CounterMetricFamily(f"{_REQUEST}errors", text, labels=["request", "error"])
    for request, counts in served.items():
        for code, count in list(counts.errors.items()):
            errors.add_metric([request, _name_of_error(code)], count)
    yield errors


def _request_times(served: Mapping[str, RequestCounts]) -> Metric:
    text = "Time from a request to its answer, waiting for records or commits included"
    family = HistogramMetricFamily(f"{_REQUEST}totaltime_seconds", text, labels=["request"])
    for request, counts in served.items():
        buckets = list(zip(_BOUNDS, accumulate(counts.within), strict=True))
        family.add_metric([request], buckets, counts.total_ns / SECOND_NS)
    return family


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(name, text, value=value)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _name_of(key: int) -> str:
    """Name a request as Apache Kafka's metrics do: FETCH is Fetch."""
    return "".join(word.capitalize() for word in ApiKey(key).name.split("_"))


def _name_of_error(code: int) -> str:
    error = ErrorCode(code)
    return error.name if error == code else str(code)
