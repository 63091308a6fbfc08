"""Topics as the driver sees them: which are there, and making those that are not.

It speaks through the Java admin client that the connector brings, inside Spark's driver, so
that a secured broker needs the same `kafka.*` settings here as for reading and writing.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

from spark_jobs.errors import JobError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from pyspark.sql import SparkSession

    from spark_jobs.options import SparkOptions

TIMEOUT_MS = 10_000

COMPACTED = {"cleanup.policy": "compact"}
"""Settings of a topic in which the last record of each key is what counts."""


class Topics:
    """The topics of one broker or cluster."""

    def __init__(self, admin: Any, jvm: Any, servers: str) -> None:  # noqa: ANN401 - Java objects
        self._admin = admin
        self._jvm = jvm
        self._servers = servers

    def names(self) -> frozenset[str]:
        """Return the names of all topics but internal ones."""
        with self._clear_errors():
            return frozenset(self._admin.listTopics().names().get())

    def require(self, topic: str, hint: str) -> None:
        """Raise `JobError` when there is no such topic; `hint` says how to get it."""
        if topic not in self.names():
            raise JobError(f"there is no topic '{topic}' on {self._servers}: {hint}")

    def identity(self, job: str, *names: str) -> dict[str, str]:
        """Return what a checkpoint of `job` must stay true to: the cluster, and these topics.

        A topic that is deleted and made anew has another id; old brokers give none.
        """
        with self._clear_errors():
            cluster = self._admin.describeCluster().clusterId().get()
        identity = {"job": job, "cluster": str(cluster)}
        for name in names:
            place = "topic" if len(names) == 1 else f"topic {name}"
            identity |= {place: name, f"{place}'s id": self.topic_id(name)}
        return identity

    def topic_id(self, name: str) -> str:
        """Return the id of a topic, another one after it was deleted and made anew."""
        with self._clear_errors():
            described = self._admin.describeTopics(self._jvm.java.util.List.of(name))
            return str(described.allTopicNames().get().get(name).topicId().toString())

    def create_missing(
        self, topics: Iterable[str], partitions: int, configs: Mapping[str, str]
    ) -> list[str]:
        """Create those of `topics` that do not exist, and return their names."""
        missing = sorted(set(topics) - self.names())
        new_topics = self._jvm.java.util.ArrayList()
        optional = self._jvm.java.util.Optional
        for topic in missing:
            new_topic = self._jvm.org.apache.kafka.clients.admin.NewTopic(
                topic, optional.of(partitions), optional.empty()
            )
            new_topics.add(new_topic.configs(self._java_map(configs)))
        with self._clear_errors():
            self._admin.createTopics(new_topics).all().get()
        return missing

    def _java_map(self, entries: Mapping[str, str]) -> Any:  # noqa: ANN401 - a Java object
        java_map = self._jvm.java.util.HashMap()
        for key, value in entries.items():
            java_map.put(key, value)
        return java_map

    def _clear_errors(self) -> AbstractContextManager[None]:
        return clear_errors(self._servers)


@contextmanager
def open_topics(spark: SparkSession, options: SparkOptions) -> Iterator[Topics]:
    """Open an admin client in Spark's driver, and close it at the end."""
    with open_admin(spark, options) as (admin, jvm):
        yield Topics(admin, jvm, options.bootstrap_servers)


@contextmanager
def open_admin(spark: SparkSession, options: SparkOptions) -> Iterator[tuple[Any, Any]]:
    """Open Java's admin client; give it and the way to Java's classes."""
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - the only way to the classes beside Spark
    properties = jvm.java.util.Properties()
    settings = {
        "default.api.timeout.ms": str(TIMEOUT_MS),
        "request.timeout.ms": str(TIMEOUT_MS // 2),
        **options.kafka,
        "bootstrap.servers": options.bootstrap_servers,
    }
    for key, value in settings.items():
        properties.setProperty(key, value)
    try:
        admin = jvm.org.apache.kafka.clients.admin.Admin.create(properties)
    except Py4JJavaError as error:
        raise JobError(f"the Kafka client does not start: {java_reason(error)}") from error
    try:
        yield admin, jvm
    finally:
        admin.close(jvm.java.time.Duration.ofSeconds(1))


@contextmanager
def clear_errors(servers: str) -> Iterator[None]:
    """Tell a Java client's error in one line that names the servers."""
    try:
        yield
    except Py4JJavaError as error:
        raise JobError(f"{servers}: {java_reason(error)}") from error


def java_reason(error: Py4JJavaError) -> str:
    """Return the innermost cause of a Java exception as one line."""
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    name = cause.getClass().getSimpleName()
    message = str(cause.getMessage() or "").strip().partition("\n")[0]
    if name == "TimeoutException":
        return f"something listens there but does not answer as a Kafka broker ({message})"
    return f"{name}: {message}"
