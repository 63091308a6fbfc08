"""An embedded broker in the shape of testcontainers' `KafkaContainer`: one import is swapped."""

from __future__ import annotations

from typing import Final, Self

from broker.embedded.embedded_broker import EmbeddedBroker
from broker.embedded.machine.reserved_port import HOST

PREFIX: Final = "KAFKA_"
WHERE: Final = frozenset(
    {"ADVERTISED_LISTENERS", "BROKER_ID", "LISTENERS", "LOG_DIRS", "NODE_ID", "ZOOKEEPER_CONNECT"}
)
"""Keys, as the environment has them, that say where a container keeps and finds things."""
OF_ITS_MACHINE: Final = ("HEAP_OPTS", "JMX_", "JVM_", "LOG4J_", "OPTS", "GC_LOG_OPTS", "DEBUG")
"""Prefixes of names that are not keys, but options of the image for its JVM."""
OF_ITS_MODE: Final = ("CONTROLLER_", "PROCESS_", "INTER_BROKER_LISTENER_", "LISTENER_SECURITY_")
"""Prefixes of keys by which an image's broker finds its controller, which is built into ours."""


class KafkaContainer:
    """The part of `testcontainers.kafka.KafkaContainer` that tests use. No image is pulled."""

    def __init__(self, image: str = "", port: int = 9093, **_: object) -> None:
        """`image` is ignored; `port` is the argument of `get_exposed_port`."""
        del image
        self.port = port
        self._config: dict[str, str] = {}
        self._broker: EmbeddedBroker | None = None

    def with_env(self, key: str, value: str) -> Self:
        """`KAFKA_NUM_PARTITIONS` stands for `num.partitions`, as in Kafka's images.

        What says where the container is or how its JVM runs has no effect.
        """
        word = key.removeprefix(PREFIX)
        if word != key and word not in WHERE and not word.startswith(OF_ITS_MACHINE + OF_ITS_MODE):
            self._config[word.lower().replace("_", ".")] = value
        return self

    def with_envs(self, **variables: str) -> Self:
        """Several at once."""
        for key, value in variables.items():
            self.with_env(key, value)
        return self

    def with_name(self, _: str) -> Self:
        """Ignored: there is no name."""
        return self

    def with_network(self, _: object) -> Self:
        """Ignored: it is on the loopback interface."""
        return self

    def with_network_aliases(self, *_: str) -> Self:
        """As `with_network`."""
        return self

    def with_kwargs(self, **_: object) -> Self:
        """Ignored: there is no container."""
        return self

    def with_kraft(self) -> Self:
        """Ignored: it needs no ZooKeeper in any case."""
        return self

    def with_cluster_id(self, _: str) -> Self:
        """Ignored: it generates its own."""
        return self

    def start(self, timeout: float = 30) -> Self:
        """Start the broker; returns when it serves."""
        del timeout
        self._broker = EmbeddedBroker(self._config).start()
        return self

    def stop(self, force: bool = True, delete_volume: bool = True) -> None:
        """Stop it; nothing of it is left."""
        del force, delete_volume
        broker, self._broker = self._broker, None
        if broker is not None:
            broker.stop()

    def get_bootstrap_server(self) -> str:
        """Bootstrap server for clients, `host:port`."""
        assert self._broker is not None, "start it first"
        return self._broker.bootstrap_servers

    def get_logs(self) -> tuple[bytes, bytes]:
        """Its log, and nothing on standard error."""
        assert self._broker is not None, "start it first"
        return "\n".join(self._broker.log_lines).encode(), b""

    def get_container_host_ip(self) -> str:
        """Host on which it listens."""
        return HOST

    def get_exposed_port(self, port: int) -> int:
        """The port at which `port` can be reached, of which there is one."""
        assert port == self.port, f"only {self.port} is exposed"
        return int(self.get_bootstrap_server().rpartition(":")[2])

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
