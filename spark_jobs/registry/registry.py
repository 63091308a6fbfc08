"""Job: serve a schema registry, with Confluent's REST interface, on a topic of the broker.

    python -m spark_jobs registry --bootstrap-servers localhost:9092 --port 8081

Schemas of Avro, JSON Schema and Protobuf, with subjects, versions, compatibility levels, modes and
references, are kept in the compacted topic `_schemas` in Confluent's format. Several registries may
serve one topic; each takes reads and writes (`registry.schema_topic`). It ends with SIGTERM or
Ctrl-C, after the requests under way; whatever happens to it, what it answered is in the topic.

It starts no Spark. It asks nobody for a password: what listens beyond `localhost` belongs behind a
proxy that does, or behind `--certificate` and a firewall.
"""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

if not __package__:  # given as a file: let the imports below find the package
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import spark_jobs.dependency_check  # noqa: F401 - first of all: it says what is not installed

# isort: split
import uvicorn
from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from pydantic import Field, PositiveInt

from spark_jobs.errors import JobError, exit_code_of
from spark_jobs.kafka.client_failures import client_failure
from spark_jobs.kafka.reachable import check_reachable
from spark_jobs.options import KafkaOptions, TopicName, parse_options
from spark_jobs.registry.registry_errors import RegistryError
from spark_jobs.registry.rest import application
from spark_jobs.registry.schema_topic import SchemaTopic, TopicSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME = "registry"
ADMIN_SECONDS = 30
OPEN_SECONDS = 120.0
MOST_REPLICAS = 3
"""As Confluent's registry makes the topic, or as many as there are brokers."""

MOST_CONNECTIONS = 1000


Setting = str | int | float | bool
"""A value that librdkafka takes."""


class RegistryOptions(KafkaOptions):
    """Options of the registry."""

    host: str = "localhost"
    """address to listen on"""

    port: Annotated[int, Field(ge=1, le=65_535)] = 8081
    """port to listen on"""

    topic: TopicName = "_schemas"
    """compacted topic of the schemas; created if it does not exist"""

    client: dict[str, str] = {}  # noqa: RUF012 - a field of pydantic
    """a setting of librdkafka, e.g. security.protocol=SSL; may be repeated"""

    certificate: Path | None = None
    """PEM file of the certificate to serve HTTPS with; without it, HTTP"""

    key: Path | None = None
    """PEM file of the certificate's key"""

    request_seconds: PositiveInt = 15
    """longest time that a request may wait for the broker"""

    def librdkafka(self) -> dict[str, Setting]:
        """Return the settings of every client."""
        return {"bootstrap.servers": self.bootstrap_servers, "log_level": "4", **self.client}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; return the process's exit code."""
    return exit_code_of(lambda: _run(argv))


def _run(argv: Sequence[str] | None) -> int:
    options = parse_options(RegistryOptions, argv, NAME, __doc__)
    check_reachable(options.bootstrap_servers)
    try:
        require_topic(options)
        settings = TopicSettings(options.topic, options.librdkafka(), options.request_seconds)
        topic = SchemaTopic(settings)
        topic.open(OPEN_SECONDS)
    except KafkaException as error:
        raise client_failure(options.bootstrap_servers, error) from error
    except RegistryError as error:
        raise JobError(f"{options.bootstrap_servers}: {error.message}") from error
    try:
        _serve(topic, options)
    finally:
        topic.close()
    return 0


def _serve(topic: SchemaTopic, options: RegistryOptions) -> None:
    sockets = _listening(options)
    server = uvicorn.Server(
        uvicorn.Config(
            application(topic),
            log_level="warning",
            access_log=False,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_graceful_shutdown=options.request_seconds,
            ssl_certfile=options.certificate,
            ssl_keyfile=options.key,
        )
    )
    scheme = "https" if options.certificate else "http"
    topic.on_failure = lambda: setattr(server, "should_exit", True)
    address = f"{scheme}://{options.host}:{options.port}"
    print(f"{NAME}: serving {options.topic} at {address}", flush=True)
    with suppress(KeyboardInterrupt):  # the signal comes again when requests have ended
        server.run(sockets)
    if topic.failure is not None:
        raise JobError(f"{options.topic} cannot be read any more: {topic.failure.str()}")


def _listening(options: RegistryOptions) -> list[socket.socket]:
    """Listen on all addresses of the host."""
    try:
        found = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM)
        return [
            socket.create_server(address, family=family)
            for family, _, _, _, address in dict.fromkeys(found)
        ]
    except OSError as error:
        named = isinstance(error, socket.gaierror)  # whose numbers are not the system's
        reason = error.strerror if named else os.strerror(error.errno or 0)
        words = f"{options.host}:{options.port}: {str(reason).lower()}"
        raise JobError(f"--host, --port: {words}") from error


def require_topic(options: RegistryOptions) -> None:
    """Create the topic if it is not there; raise `JobError` for one that would lose schemas."""
    admin = AdminClient(options.librdkafka())
    known = admin.list_topics(timeout=ADMIN_SECONDS)
    if options.topic not in known.topics:
        replicas = min(MOST_REPLICAS, len(known.brokers))
        new = NewTopic(options.topic, 1, replicas, config={"cleanup.policy": "compact"})
        try:
            admin.create_topics([new])[options.topic].result(ADMIN_SECONDS)
        except KafkaException as error:
            if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
                raise
        return
    if len(known.topics[options.topic].partitions) != 1:
        raise JobError(f"--topic: {options.topic} has several partitions, a registry needs one")
    resource = ConfigResource(ResourceType.TOPIC, options.topic)
    policy = admin.describe_configs([resource])[resource].result(ADMIN_SECONDS)["cleanup.policy"]
    if policy.value != "compact":
        raise JobError(
            f"--topic: {options.topic} has cleanup.policy={policy.value} and would lose schemas; "
            "set it to compact"
        )


if __name__ == "__main__":
    sys.exit(main())
