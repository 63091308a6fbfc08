"""A broker's metrics, as scraped."""

from __future__ import annotations

import http.client
import re
import socket
import sys
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

from broker.metrics.endpoint import MetricsEndpoint
from broker.network.listener import ListenError
from compiled.activation import activation
from protocol.errors import ErrorCode
from tests.broker.test_processes import create, produce, read_offsets
from tests.support.brokers.broker_process import free_port
from tests.support.brokers.ours import ours
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.brokers.broker_process import BrokerProcess

pytestmark = pytest.mark.process

Labels = tuple[tuple[str, str], ...]


class Scraper:
    """Asks one endpoint."""

    def __init__(self, port: int) -> None:
        self._port = port

    def get(self, path: str, method: str = "GET") -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def numbers(self, path: str = "/metrics") -> dict[tuple[str, Labels], float]:
        status, page = self.get(path)
        assert status == 200
        return {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(page)
            for sample in family.samples
        }


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def broker(tmp_path: Path, port: int) -> Iterator[BrokerProcess]:
    process = ours(tmp_path, {"metrics.port": str(port)})
    process.start()
    yield process
    process.kill()


def test_request_metrics_count_produce_and_fetch(broker: BrokerProcess, port: int) -> None:
    scraper = Scraper(port)
    create(broker, "orders")
    before = scraper.numbers()
    for _ in range(3):
        assert produce(broker, "orders") == ErrorCode.NONE
    assert produce(broker, "nowhere") != ErrorCode.NONE
    assert read_offsets(broker, "orders") == [0, 1, 2]

    found = scraper.numbers()

    def request(name: str, kind: str, **labels: str) -> float:
        labels["request"] = kind
        return found["kafka_network_requestmetrics_" + name, tuple(sorted(labels.items()))]

    def one(name: str) -> float:
        return found[name, ()]

    assert request("requests_total", "Produce") == 4
    assert request("errors_total", "Produce", error="UNKNOWN_TOPIC_OR_PARTITION") == 1
    assert request("requests_total", "Fetch") >= 2
    assert request("totaltime_seconds_count", "Produce") == 4
    assert request("totaltime_seconds_bucket", "Produce", le="+Inf") == 4
    assert 0 < request("localtime_seconds_total", "Produce") < 60
    assert one("kafka_server_brokertopicmetrics_bytesin_total") > 4 * 60
    assert one("kafka_server_brokertopicmetrics_bytesout_total") > 3 * 60
    records_in = ("kafka_server_brokertopicmetrics_messagesin_total", (("topic", "orders"),))
    assert found[records_in] - before[records_in] == 3
    assert one("kafka_server_replicamanager_leadercount") == 1
    assert one("kafka_server_replicamanager_underreplicatedpartitions") == 0
    assert one("kafka_controller_kafkacontroller_offlinepartitionscount") == 0
    assert one("kafka_controller_kafkacontroller_activecontrollercount") == 1
    assert one("kafka_log_logmanager_offlinelogdirectorycount") == 0
    assert found["kafka_server_build_info", (("compiled", activation().answer),)] == 1
    assert one("kafka_server_socketservermetrics_connection_creation_total") >= 6
    assert one("kafka_server_sharesessioncache_sharesessionscount") == 0
    assert one("kafka_server_sharepartitionmetrics_inflightmessagecount") == 0
    assert one("process_resident_memory_bytes") > 10_000_000


def test_delayed_records_are_counted(broker: BrokerProcess, port: int) -> None:
    create(broker, "reminders", delivery_delay_enable="true", delivery_delay_ms="3600000")
    for _ in range(3):
        assert produce(broker, "reminders") == ErrorCode.NONE

    scraper = Scraper(port)

    # A record is counted when delivery has followed the log, just after its acknowledgement.
    assert wait_until(lambda: scraper.numbers()["kafka_log_delivery_waitingrecords", ()] == 3, 60.0)
    assert scraper.numbers()["kafka_log_delivery_deadletters", ()] == 0


def test_partitions_are_asked_for_apart(broker: BrokerProcess, port: int) -> None:
    create(broker, "orders")
    produce(broker, "orders")
    of_orders = (("partition", "0"), ("topic", "orders"))

    found = Scraper(port).numbers("/metrics/partitions")

    assert found["kafka_log_log_logstartoffset", of_orders] == 0
    assert found["kafka_log_log_logendoffset", of_orders] == 1
    assert found["kafka_log_log_highwatermark", of_orders] == 1
    assert found["kafka_log_log_size", of_orders] > 60
    assert found["kafka_log_log_numlogsegments", of_orders] == 1
    assert found["kafka_cluster_partition_underreplicated", of_orders] == 0


def test_other_paths_name_those_there_are(broker: BrokerProcess, port: int) -> None:
    scraper = Scraper(port)
    status, text = scraper.get("/")
    assert (status, text.splitlines()[1:]) == (
        404,
        ["/metrics", "/metrics/partitions", "/metrics/clients"],
    )
    assert scraper.get("/metrics", "POST")[0] == 405


def test_metrics_address_is_logged_and_closed_on_stop(broker: BrokerProcess, port: int) -> None:
    assert f"metrics at http://127.0.0.1:{port}/metrics" in broker.output_tail()
    assert broker.stop() == 0
    with pytest.raises(ConnectionRefusedError):
        Scraper(port).get("/metrics")
    assert "Traceback" not in broker.output_tail()


def test_an_endpoint_whose_port_is_taken_ends_the_start_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        broker = ours(tmp_path, {"metrics.port": str(taken)})
        broker.launch()
        assert broker.wait_until_ended() == 1
    assert broker.output_tail().endswith(f": metrics.port: 127.0.0.1:{taken} is already in use")


def test_an_unresolvable_metrics_host_is_reported(tmp_path: Path) -> None:
    broker = ours(tmp_path, {"metrics.port": "0", "metrics.host": "no-such-host.invalid"})
    broker.launch()
    assert broker.wait_until_ended() == 1
    assert (
        ": metrics.host: cannot listen on no-such-host.invalid:0: no address is known for no-such"
        in broker.output_tail()
    )


@pytest.mark.parametrize("host", ["::1%nope", "[::1%nope]"])
def test_metrics_host_without_an_interface_is_shown_in_one_pair_of_brackets(host: str) -> None:
    why = re.escape("metrics.host: cannot listen on [::1%nope]:9192: there is no interface nope")
    with pytest.raises(ListenError, match=f"^{why}$"):
        MetricsEndpoint(host, 9192)


def test_without_a_port_nothing_of_it_is_imported() -> None:
    import subprocess

    program = (
        "import asyncio, sys\n"
        "from broker.app import Broker\n"
        "from config.broker import BrokerConfig\n"
        "async def main():\n"
        "    Broker(BrokerConfig())\n"
        "asyncio.run(main())\n"
        "print([name for name in sys.modules if re.match('prometheus|http|wsgiref', name)])\n"
    )
    outcome = subprocess.run(
        [sys.executable, "-c", "import re\n" + program], capture_output=True, text=True, check=True
    )
    assert re.fullmatch(r"\[\]\n", outcome.stdout)
