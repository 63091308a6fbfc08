"""An embedded broker starts, serves, dies and goes without a trace."""

from __future__ import annotations

import gc
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from broker.testing import (
    EmbeddedBroker,
    EmbeddedBrokerError,
    NotReachedError,
    Produce,
)
from tests.interop.embedded.conftest import produced, until
from tests.support.brokers.ipv6 import needs_ipv6
from tests.support.jars import REPOSITORY

if TYPE_CHECKING:
    from broker.embedded.settings import Isolation

each_isolation = pytest.mark.parametrize("isolation", ["thread", "process"])


@each_isolation
def test_produced_records_are_returned_from_the_log(isolation: Isolation) -> None:
    with EmbeddedBroker(isolation=isolation) as broker:
        broker.create_topic("orders", partitions=2, config={"retention.ms": -1})

        assert produced(broker.bootstrap_servers, "orders", b"one", b"two") == [0, 0]

        records = broker.records("orders")
        assert sorted(record.value or b"" for record in records) == [b"one", b"two"]
        assert {record.topic for record in records} == {"orders"}
        assert broker.topics() == {"orders": 2}
        assert [one.acks for one in broker.requests.of(Produce)] == [-1, -1]


@each_isolation
def test_records_and_port_survive_a_kill(isolation: Isolation) -> None:
    with EmbeddedBroker(isolation=isolation) as broker:
        broker.create_topic("orders")
        produced(broker.bootstrap_servers, "orders", b"one")
        address = broker.bootstrap_servers

        broker.kill()

        assert not broker.is_running
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((address.split(":")[0], int(address.split(":")[1])))
        broker.start()
        assert broker.bootstrap_servers == address
        assert [record.value for record in broker.records("orders")] == [b"one"]


def test_a_killed_broker_has_not_stopped_in_order() -> None:
    with EmbeddedBroker() as broker:
        broker.create_topic("orders")
        clean = broker.log_dir / ".kafka_cleanshutdown"

        broker.kill()
        assert not clean.exists()
        broker.start()
        assert any("unclean" in line for line in broker.log_lines)
        broker.restart()
        assert not any("unclean" in line for line in broker.log_lines[-8:])


@each_isolation
def test_a_paused_broker_answers_nothing_until_it_is_resumed(isolation: Isolation) -> None:
    with EmbeddedBroker(isolation=isolation) as broker:
        broker.create_topic("orders")
        host, port = broker.bootstrap_servers.split(":")
        with broker.paused():
            with socket.create_connection((host, int(port))) as client:
                client.sendall(bytes.fromhex("0000000a0012000000000001ffff"))
                client.settimeout(0.2)
                with pytest.raises(TimeoutError):
                    client.recv(1)
            with pytest.raises(EmbeddedBrokerError, match="paused"):
                broker.topics()
            assert broker.is_running
        assert broker.topics() == {"orders": 1}


@each_isolation
def test_nothing_is_left_behind(isolation: Isolation) -> None:
    threads, descriptors = set(threading.enumerate()), _descriptors()
    with EmbeddedBroker(isolation=isolation) as broker:
        broker.create_topic("orders")
        produced(broker.bootstrap_servers, "orders", b"one")
        directory = broker.log_dir.parent
        port = int(broker.bootstrap_servers.split(":")[1])
        assert directory.exists()
    gc.collect()

    assert not directory.exists()
    assert set(threading.enumerate()) <= threads
    assert _descriptors() <= descriptors
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", port))


def _descriptors() -> set[str]:
    """Return the open descriptors, without those that librdkafka closes late."""
    found = set()
    for number in Path("/proc/self/fd").iterdir():
        try:
            target = str(number.readlink())
        except FileNotFoundError:
            continue
        if "embedded" in target or target.startswith("anon_inode:[eventpoll]"):
            found.add(f"{number} {target}")
    return found


def test_two_brokers_in_one_process_never_see_each_other() -> None:
    with EmbeddedBroker() as one, EmbeddedBroker({"num.partitions": 3}) as other:
        one.create_topic("orders")
        produced(one.bootstrap_servers, "orders", b"one")
        produced(other.bootstrap_servers, "invoices", b"two")

        assert list(one.topics()) == ["orders"]
        assert other.topics() == {"invoices": 3}
        assert not any("invoices" in line for line in one.log_lines)
        assert not any("orders" in line for line in other.log_lines)
        assert len(one.requests.of(Produce)) == len(other.requests.of(Produce)) == 1
        other.kill()
        assert produced(one.bootstrap_servers, "orders", b"three") == [0]


def test_a_broker_leaves_the_state_of_its_process_unchanged() -> None:
    import logging
    import resource
    import signal
    import sys

    def state() -> tuple[object, ...]:
        return (
            resource.getrlimit(resource.RLIMIT_NOFILE),
            [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)],
            gc.get_threshold(),
            gc.isenabled(),
            sys.getswitchinterval(),
            Path.cwd(),
            logging.getLogger("broker").level,
            logging.getLogger("broker").propagate,
            list(logging.getLogger("broker").handlers),
        )

    before = state()
    with EmbeddedBroker() as broker:
        broker.create_topic("orders")
        assert state()[:6] == before[:6]
    assert state() == before


def test_memory_is_a_file_system_in_memory() -> None:
    with EmbeddedBroker(storage="memory") as broker:
        broker.create_topic("orders")
        produced(broker.bootstrap_servers, "orders", b"one")
        assert str(broker.log_dir).startswith("/dev/shm/")
        assert len(broker.records("orders")) == 1
        directory = broker.log_dir.parent
    assert not directory.exists()


def test_a_log_directory_of_the_users_own_stays(tmp_path: Path) -> None:
    with EmbeddedBroker(log_dir=tmp_path / "logs") as broker:
        broker.create_topic("orders")
        produced(broker.bootstrap_servers, "orders", b"one")
    with EmbeddedBroker(log_dir=tmp_path / "logs") as broker:
        assert [record.value for record in broker.records("orders")] == [b"one"]


def test_a_port_in_use_fails_the_start_without_leftovers() -> None:
    threads = set(threading.enumerate())
    with EmbeddedBroker() as one, pytest.raises(EmbeddedBrokerError, match="already in use"):
        EmbeddedBroker({"listeners": f"PLAINTEXT://{one.bootstrap_servers}"}).start()
    assert set(threading.enumerate()) <= threads


def test_listeners_of_the_users_own_are_where_clients_connect() -> None:
    with EmbeddedBroker() as one:
        address = one.bootstrap_servers
    with EmbeddedBroker({"listeners": f"PLAINTEXT://{address}"}) as broker:
        assert broker.bootstrap_servers == address
        assert produced(address, "orders", b"one") == [0]


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", pytest.param("[::1]", marks=needs_ipv6), ""]
)
def test_clients_are_told_the_port_that_was_chosen_for_port_0(host: str) -> None:
    with EmbeddedBroker({"listeners": f"PLAINTEXT://{host}:0"}) as broker:
        assert not broker.bootstrap_servers.endswith(":0")
        assert produced(broker.bootstrap_servers, "orders", b"one") == [0]


@needs_ipv6
def test_port_0_of_an_address_with_a_zone_is_chosen() -> None:
    with EmbeddedBroker({"listeners": "PLAINTEXT://[::1%lo]:0"}) as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        assert host == "[::1%lo]"
        socket.create_connection(("::1", int(port)), timeout=10).close()


def test_each_listener_with_port_0_gets_a_port_of_its_own() -> None:
    listeners = "PLAINTEXT://127.0.0.1:0,OTHER://127.0.0.1:0"
    protocols = "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT"
    config = {"listeners": listeners, "listener.security.protocol.map": protocols}
    with EmbeddedBroker(config) as broker:
        first, second = broker.config["listeners"].split(",")
        assert first == f"PLAINTEXT://{broker.bootstrap_servers}"
        address = second.removeprefix("OTHER://")
        assert produced(address, "orders", b"one") == [0]


def test_aborted_records_are_hidden_from_committed_reads(
    broker: EmbeddedBroker, topic: str
) -> None:
    from confluent_kafka import Producer

    producer = Producer({**broker.client_config, "transactional.id": "orders"})
    producer.init_transactions(20)
    for value, end in (
        (b"kept", producer.commit_transaction),
        (b"aborted", producer.abort_transaction),
        (b"kept too", producer.commit_transaction),
    ):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush(20)
        end(20)
    producer.begin_transaction()
    producer.produce(topic, b"open")
    producer.flush(20)

    everything = [record.value for record in broker.records(topic)]
    committed = [record.value for record in broker.records(topic, committed_only=True)]

    assert everything == [b"kept", b"aborted", b"kept too", b"open"]
    assert committed == [b"kept", b"kept too"]
    producer.abort_transaction(20)


def test_a_broker_in_a_process_ends_with_the_one_that_has_started_it(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\n"
        "from broker.testing import EmbeddedBroker\n"
        "broker = EmbeddedBroker(isolation='process').start()\n"
        "print(broker._engine.ask('process_id'), broker.log_dir.parent, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=REPOSITORY, check=False
    )
    number, directory = ended.stdout.split()

    until(lambda: not Path(f"/proc/{number}").exists())
    until(lambda: not Path(directory).exists())


def test_an_invalid_configuration_fails_the_start() -> None:
    with pytest.raises(EmbeddedBrokerError, match=r"num\.partitions"):
        EmbeddedBroker({"num.partitions": "many"}).start()


def test_an_unknown_key_causes_a_warning() -> None:
    with pytest.warns(UserWarning, match=r"num\.partition is not"):
        made = EmbeddedBroker({"num.partition": 3})
    with made as broker:
        assert any("num.partition is not a configuration key" in one for one in broker.log_lines)
        assert sum("WARNING" in one for one in broker.log_lines) == 1


@each_isolation
def test_as_many_requests_are_kept_as_is_configured(isolation: Isolation) -> None:
    kept = {"embedded.requests.kept": 3, "embedded.record.bytes.kept": 200}
    with EmbeddedBroker(kept, isolation=isolation) as broker:
        broker.create_topic("orders")
        produced(broker.bootstrap_servers, "orders", b"one", b"two", b"three", b"four")
        assert 0 < len(broker.requests) <= 3
        produced(broker.bootstrap_servers, "orders", bytes(300))
        assert broker.requests.of(Produce) == []


def test_records_of_a_partition_that_there_is_not_are_an_error(
    broker: EmbeddedBroker, topic: str
) -> None:
    for wrong in (1, 99, -1):
        with pytest.raises(EmbeddedBrokerError, match=f"there is no {topic}-{wrong}: the last"):
            broker.records(topic, wrong)
    assert broker.records(topic, 0) == []


def test_wait_for_blocks_until_a_group_reaches_the_lag(broker: EmbeddedBroker, topic: str) -> None:
    from confluent_kafka import Consumer

    produced(broker.bootstrap_servers, topic, b"one", b"two")
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    for _ in range(2):
        message = consumer.poll(10)
        assert message is not None
        assert message.error() is None
        if message.offset() == 0:
            consumer.commit(message=message, asynchronous=False)
            broker.wait_for("readers", lag=1)
            with pytest.raises(NotReachedError, match=f"{topic}-0: 1"):
                broker.wait_for("readers", timeout=0.05)
    consumer.commit(asynchronous=False)
    broker.wait_for("readers")
    consumer.close()


def test_a_full_disk_is_the_end_of_a_broker_with_one() -> None:
    with EmbeddedBroker() as broker:
        broker.create_topic("orders")
        produced(broker.bootstrap_servers, "orders", b"one")

        with broker.fill_disk():
            assert produced(
                broker.bootstrap_servers, "orders", b"two", message_timeout_ms=1_000
            ) != [0]
            until(lambda: not broker.is_running)
            assert broker.failure == "no log directory is left that can be written"
            assert any("No space left on device" in line for line in broker.log_lines)

        broker.start()
        assert produced(broker.bootstrap_servers, "orders", b"three") == [0]
        assert next(record.value for record in broker.records("orders")) == b"one"


def test_only_warnings_of_the_broker_propagate_by_default(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("WARNING")
    with EmbeddedBroker() as broker:
        assert any("ready on" in line for line in broker.log_lines)
        broker.fill_disk()
        produced(broker.bootstrap_servers, "orders", b"two", message_timeout_ms=100)
        until(lambda: not broker.is_running)
    assert {record.levelname for record in caplog.records} == {"ERROR"}
