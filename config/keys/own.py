"""Keys of this broker alone, which Apache Kafka does not have."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import LOW, boolean, integer, long, password, string


@dataclass(frozen=True, init=False, repr=False, eq=False)
class OwnKeys:
    """Keys of this broker alone, which Apache Kafka does not have."""

    audit_log_allowed: bool = boolean(False, importance=LOW, acts=True)
    """Log allowed actions in the audit log as well, at the level of denied ones."""

    audit_log_max_lines_per_second: int = integer(1000, low=1, importance=LOW, acts=True)
    """Audit log lines for denied actions, and separately for allowed ones; the rest is counted."""

    authorizer_max_cached_decisions: int = integer(50_000, low=1000, importance=LOW, acts=True)
    """Decisions of the authorizer that are kept until an access control list changes."""

    authorizer_max_deletions_per_request: int = integer(10_000, low=1, importance=LOW, acts=True)
    """Matches of all filters of a DeleteAcls together, with StandardAuthorizer.

    Beyond it, the request is refused and nothing is deleted. Apache Kafka's limit is as high.
    """

    client_telemetry_max_instances: int = integer(16_384, low=1, importance=LOW, acts=True)
    """Clients that push metrics, of which the broker remembers when they may push again."""

    client_telemetry_max_points: int = integer(2000, low=1, importance=LOW, acts=True)
    """Data points accepted from one push of a client's metrics; the rest is dropped and counted."""

    client_telemetry_max_series: int = integer(50_000, low=1, importance=LOW, acts=True)
    """Data points kept of all clients' pushes; the rest is dropped and counted."""

    connection_buffer_max_bytes: int = integer(
        1536 * 1024, low=128 * 1024, importance=LOW, acts=True
    )
    """Largest buffer that a connection keeps for its next request, until it is idle.

    Larger requests count in `queued.max.request.bytes` and give their memory back at once. The
    default holds one of a Java producer at its defaults (`max.request.size`).
    """

    connection_log_max_lines_per_second: int = integer(100, low=1, importance=LOW, acts=True)
    """Log lines on closed connections, such as failed log-ins; the rest is counted."""

    delivery_batch_max_bytes: int = integer(
        64 * 1024, low=1024, high=256 * 1024, importance=LOW, acts=True
    )
    """Bytes of records in a delivered batch, which is built on the event loop.

    A record that is larger has a batch of its own."""

    delivery_batch_max_records: int = integer(256, low=1, high=1_000, importance=LOW, acts=True)
    """Records in a batch that delivers them; ten of them take the event loop about 0.1 ms."""

    delivery_cancelled_max_records: int = integer(100_000, low=1, importance=LOW, acts=True)
    """Cancelled records of a partition that are not yet due, at about 80 bytes each.

    Beyond it, cancellations are refused with POLICY_VIOLATION."""

    delivery_memory_max_records: int = integer(
        16_384, low=1_024, high=32_768, importance=LOW, acts=True
    )
    """Waiting records of a partition that are kept in memory, at about 150 bytes each.

    The rest is in files. As many are kept of its open transactions, and of its dead letters.
    """

    embedded_record_bytes_kept: int = long(32 << 20, low=0, importance=LOW, acts=True)
    """Bytes of records in the requests that a broker in a test keeps (docs/testing.md)."""

    embedded_requests_kept: int = integer(10_000, low=0, importance=LOW, acts=True)
    """Requests of clients, the newest, that a broker in a test keeps for inspection."""

    group_consumer_regex_max_count: int = integer(100, low=1, importance=LOW, acts=True)
    """Different regular expressions by which the members of a consumer group may subscribe.

    What each of them matches is kept, and stored: it may be the names of all topics.
    """

    group_consumer_regex_max_length: int = integer(1024, low=1, importance=LOW, acts=True)
    """Longest regular expression by which a consumer may subscribe, in characters."""

    group_member_max_topics: int = integer(10_000, low=1, importance=LOW, acts=True)
    """Topics that a member of a consumer or share group (KIP-848, KIP-932) may subscribe to."""

    group_streams_max_tasks: int = integer(20_000, low=1, importance=LOW, acts=True)
    """Tasks that the topology of a streams group may have; one with more is refused."""

    group_streams_max_topology_size: int = integer(2_000, low=1, importance=LOW, acts=True)
    """Subtopologies, topics and their configurations, together, that a topology may have."""

    max_incremental_fetch_session_cache_partitions: int = integer(
        1_000_000, low=0, importance=LOW, acts=True
    )
    """Partitions in all incremental fetch sessions together, at about 300 bytes each.

    Beyond it, idle sessions are evicted, and consumers' in favour of followers'; other readers get
    no session, and list all their partitions in each request.
    """

    max_new_partitions_per_request: int = integer(10_000, low=1, importance=LOW, acts=True)
    """Partitions that one request may create, in all its topics together."""

    max_request_elements: int = integer(1_000_000, low=100_000, importance=LOW, acts=True)
    """Elements of all arrays of a client's request together; more of them close the connection."""

    max_ssl_handshakes: int = integer(500, low=1, importance=LOW, acts=True)
    """Clients that may be at their TLS handshake; one more, and the first of them is hung up on."""

    metrics_host: str = string("127.0.0.1", importance=LOW, acts=True)
    """Address at which metrics are served; empty is every interface."""

    metrics_password: str | None = password(importance=LOW, acts=True)
    """Password of `metrics.user`; it is sent in clear text unless `metrics.ssl.enable`."""

    metrics_port: int = integer(-1, low=-1, high=65_535, importance=LOW, acts=True)
    """Port at which metrics are served over HTTP, for Prometheus; -1 serves none, 0 takes any."""

    metrics_ssl_enable: bool = boolean(False, importance=LOW, acts=True)
    """Serve metrics over TLS, by the `ssl.*` keys as they are at the start.

    Keys that begin with `listener.name.metrics.` take precedence."""

    metrics_user: str | None = string(None, importance=LOW, acts=True)
    """Only user allowed to read the metrics, by HTTP basic authentication; none allows
    everybody."""

    quota_max_tracked_clients: int = integer(10_000, low=1, importance=LOW, acts=True)
    """Users and client ids tracked for each kind of quota; also addresses.

    Beyond it, the longest idle one is evicted, and starts from zero when it returns."""

    queued_max_request_elements: int = integer(1_000_000, low=1, importance=LOW, acts=True)
    """Elements in memory of requests of more than 1,000 elements and 32 KB, over all connections.

    Beyond it, such requests wait until another one is answered. An element takes 100 to 300 bytes,
    and its part of the answer about as much.
    """

    reserved_file_descriptors: int = integer(-1, low=-1, importance=LOW, acts=True)
    """File descriptors that are not for connections; -1: a quarter of the limit, and 64."""

    share_state_retry_timeout_ms: int = integer(6000, low=0, importance=LOW, acts=True)
    """Time for which requests to a moving, loading or unreachable share coordinator are retried.

    After that, the read or write fails."""

    ssl_handshake_timeout_ms: int = integer(10_000, low=1, importance=LOW, acts=True)
    """Timeout of a client's TLS handshake."""

    ssl_store_check_interval_ms: int = integer(10_000, low=-1, importance=LOW, acts=True)
    """Interval between checks for changed key store and trust store files.

    Changed files are reloaded. With -1, they are reloaded only when a TLS key is altered."""

    transactional_id_pattern_max_length: int = integer(1024, low=1, importance=LOW, acts=True)
    """Longest pattern by which transactions may be listed, in characters."""

    zookeeper_request_max_bytes: int = integer(1_000_000, low=1 << 18, importance=LOW, acts=True)
    """Largest write that is sent to ZooKeeper, which hangs up at its own `jute.maxbuffer`."""
