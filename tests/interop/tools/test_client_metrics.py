"""kafka-client-metrics, and a Java producer that pushes what it asks for."""

from __future__ import annotations

import urllib.request
from typing import TYPE_CHECKING

from tests.interop.conftest import eventually
from tests.support import jars
from tests.support.brokers.broker_process import free_port
from tests.support.brokers.ours import ours
from tests.support.tools import Tools

if TYPE_CHECKING:
    from pathlib import Path

RECORDS, PER_SECOND = 900, 300


def test_a_producer_pushes_the_subscribed_metrics(tmp_path: Path) -> None:
    port = free_port()
    broker = ours(tmp_path / "broker", {"metrics.port": str(port)})
    server = ("--bootstrap-server", broker.bootstrap)

    def page() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics/clients") as answer:
            return str(answer.read().decode())

    tools = Tools(jars.KAFKA_4)
    try:
        broker.start()
        tools.check("topics", "--create", *server, "--topic", "watched", "--partitions", "1")
        tools.check(
            *("client-metrics", *server, "--alter", "--name", "of-producers", "--interval", "200"),
            *("--metrics", "org.apache.kafka.producer.", "--match", "client_id=watched-.*"),
        )
        described = tools.check("client-metrics", *server, "--describe", "--name", "of-producers")
        assert "interval.ms=200" in described.output
        assert "of-producers" in tools.check("client-metrics", *server, "--list").lines

        tools.check(
            *("producer-perf-test", "--topic", "watched", "--record-size", "100"),
            *("--num-records", str(RECORDS), "--throughput", str(PER_SECOND), "--producer-props"),
            *(f"bootstrap.servers={broker.bootstrap}", "client.id=watched-1"),
        )

        pushed = [line for line in page().splitlines() if line.startswith("kafka_client_producer_")]
        assert pushed
        assert all('client_id="watched-1"' in line for line in pushed)
        assert all('client_software_name="apache-kafka-java"' in line for line in pushed)

        tools.check("client-metrics", *server, "--delete", "--name", "of-producers")
        eventually(
            lambda: "of-producers" not in tools.run("client-metrics", *server, "--list").lines
        )
    finally:
        tools.close()
        broker.kill()
