"""Several brokers of one file: what each of them makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from config.errors import ConfigError
from config.loader import load_broker_config
from config.machine.cpus import cpus_of
from config.machine.processes import Process, check_apart, own_key

if TYPE_CHECKING:
    from config.broker import BrokerConfig

FILE = """\
broker.processes=3
broker.id=10
listeners=PLAINTEXT://:9092,SSL://[::1]:9192
advertised.listeners=PLAINTEXT://kafka:19092,SSL://kafka:19192
log.dirs=/disk1/kafka/,/disk2/kafka
zookeeper.connect=localhost:2181
num.partitions=7
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "node.properties"
    path.write_text(FILE)
    return path


def of_process(path: Path, number: int, *overrides: str) -> tuple[BrokerConfig, list[str]]:
    return load_broker_config(path, overrides, process=Process(number, "machine-a"))


def all_of(path: Path, *overrides: str) -> list[BrokerConfig]:
    whole = load_broker_config(path, overrides)[0]
    return [of_process(path, n, *overrides)[0] for n in range(whole.broker_processes)]


def test_ids_ports_and_directories_count_up(path: Path) -> None:
    config, warnings = of_process(path, 2)
    assert warnings == []
    assert config.broker_id == 12
    assert config.listeners == ("PLAINTEXT://:9094", "SSL://[::1]:9194")
    assert config.advertised_listeners == ("PLAINTEXT://kafka:19094", "SSL://kafka:19194")
    assert config.log_dirs == ("/disk1/kafka/broker12", "/disk2/kafka/broker12")
    assert config.status_socket == "/disk1/kafka/node/broker12.sock"
    assert config.num_partitions == 7


def test_the_first_process_uses_the_files_values_and_its_own_directory(path: Path) -> None:
    config, _ = of_process(path, 0)
    assert (config.broker_id, config.listeners[0]) == (10, "PLAINTEXT://:9092")
    assert config.log_dirs == ("/disk1/kafka/broker10", "/disk2/kafka/broker10")


def test_the_default_listener_moves_as_well(path: Path) -> None:
    path.write_text("broker.id=0\nzookeeper.connect=z:1\nbroker.processes=2\n")
    assert of_process(path, 1)[0].listeners == ("PLAINTEXT://:9093",)
    assert of_process(path, 1)[0].advertised_listeners == ()


def test_the_machine_is_the_rack_unless_one_is_named(path: Path) -> None:
    assert of_process(path, 1)[0].broker_rack == "machine-a"
    assert of_process(path, 1, "broker.rack=zone-1")[0].broker_rack == "zone-1"


def test_a_key_of_one_process_overrides_the_file_for_it(path: Path) -> None:
    own = "broker.process.1.log.dirs=/fast\nbroker.process.1.num.partitions=9\n"
    path.write_text(own + FILE)
    config, warnings = of_process(path, 1)
    assert (config.log_dirs, config.num_partitions, warnings) == (("/fast",), 9, [])
    config, warnings = of_process(path, 2)
    assert (config.log_dirs[0], config.num_partitions, warnings) == (
        "/disk1/kafka/broker12",
        7,
        [],
    )


def test_an_invalid_value_is_reported_with_line_and_process(path: Path) -> None:
    path.write_text(FILE + "broker.process.1.num.partitions=0\n")
    with pytest.raises(ConfigError) as refusal:
        of_process(path, 1)
    assert str(refusal.value).startswith(f"{path}:8: Invalid value 0 for configuration num.part")
    with pytest.raises(ConfigError) as refusal:
        of_process(path, 1, "broker.process.1.num.partitions=1", "reserved.broker.max.id=10")
    assert str(refusal.value).startswith(f"{path}:2 (process 1): Invalid value 11")


def test_mistyped_keys_of_a_process_and_processes_there_are_not_get_lines(path: Path) -> None:
    path.write_text(FILE + "broker.process.3.log.dirs=/x\nbroker.process.1.log.dir.s=/x\n")
    assert load_broker_config(path)[1] == [
        f"{path}:8: broker.process.3.log.dirs is ignored: the last process is 2",
        f"{path}:9: log.dir.s is not a configuration key; did you mean log.dirs?",
    ]


@pytest.mark.parametrize(
    ("override", "line", "why"),
    [
        ("zookeeper.connect=", 1, "several brokers are one cluster through ZooKeeper only"),
        ("broker.id=-1", None, "so it has to be set"),
        ("listeners=PLAINTEXT://:65534", None, "process 2 would have port 65536"),
        ("key.index.port=65534", None, "process 2 would have port 65536"),
        ("broker.cpus=3-1", None, "a range goes up"),
        ("broker.cpus=0-9999999999", None, "its end is less than"),
        ("broker.cpus=one", None, "CPUs are written as 0,2 or 0-3"),
    ],
)
def test_a_file_unsuitable_for_several_brokers_is_refused(
    path: Path, override: str, line: int | None, why: str
) -> None:
    overrides = [override]
    if override.startswith("listeners"):
        overrides.append("advertised.listeners=PLAINTEXT://kafka:1")
    with pytest.raises(ConfigError) as refusal:
        of_process(path, 2, *overrides)
    place = "--override: " if line is None else f"{path}:{line}: "
    assert str(refusal.value).startswith(place)
    assert why in str(refusal.value)


def test_brokers_with_a_shared_port_or_directory_are_refused(path: Path) -> None:
    def problem(*overrides: str) -> str:
        whole = load_broker_config(path, overrides)[0]
        with pytest.raises(ConfigError) as refusal:
            check_apart(whole, all_of(path, *overrides))
        return str(refusal.value)

    check_apart(load_broker_config(path)[0], all_of(path))
    two = "listeners=PLAINTEXT://:9092,SSL://:9094"
    assert problem(two) == (
        "listeners: process 0 and process 2 would both have 9094; set broker.process.2.listeners"
    )
    same = "/disk2/kafka/broker10"
    assert problem(f"broker.process.1.log.dirs={same}/").startswith(
        f"log.dirs: process 0 and process 1 would both have {same};"
    )
    assert problem("metrics.port=9093").startswith(
        "listeners: the metrics and process 1 would both have 9093;"
    )
    assert problem("key.index.port=9093").startswith("listeners: process 0 and process 1 would")
    assert problem("broker.process.1.broker.id=10").startswith("broker.id: process 0 and proc")
    assert problem("metrics.port=9404", "broker.process.1.metrics.port=9404").startswith(
        "metrics.port: the metrics and process 1 would both have 9404;"
    )
    assert problem("broker.process.0.log.dirs=/disk1/kafka").endswith(
        "configuration log.dirs: it lies in the log directory /disk1/kafka"
    )
    assert problem("broker.processes.directory=/disk1/kafka/broker11/node").endswith(
        "broker.processes.directory: it lies in the log directory /disk1/kafka/broker11"
    )
    assert problem("broker.processes.directory=/disk1/kafka/broker11/").endswith(
        "broker.processes.directory: it is a log directory"
    )


def test_a_slash_behind_a_log_directory_makes_no_difference(path: Path) -> None:
    own = "broker.process.1.log.dirs=/disk3/"
    check_apart(load_broker_config(path, [own])[0], all_of(path, own))


@pytest.mark.parametrize(
    ("cpus", "shares"),
    [
        ("", [[], [], []]),
        ("0-5", [[0, 1], [2, 3], [4, 5]]),
        ("0-3", [[0], [1], [2, 3]]),
        ("4,6", [[4], [6], [4]]),
        ("1", [[1], [1], [1]]),
        ("7,0-1", [[7], [0], [1]]),
    ],
)
def test_cpus_are_dealt_out_in_their_order(path: Path, cpus: str, shares: list[list[int]]) -> None:
    assert [cpus_of(config) for config in all_of(path, f"broker.cpus={cpus}")] == shares


def test_only_keys_of_a_process_are_parsed_as_such() -> None:
    assert own_key("broker.process.12.log.dirs") == (12, "log.dirs")
    for name in ("broker.processes", "broker.process.01.x", "broker.process.1.", "broker.id"):
        assert own_key(name) is None


def test_the_sample_file_of_a_node_loads_without_a_warning() -> None:
    sample = Path(__file__).parents[3] / "config" / "node.properties"
    whole, warnings = load_broker_config(sample)
    configs = [load_broker_config(sample, process=Process(n, "m")) for n in range(2)]
    assert (whole.broker_processes, warnings) == (2, [])
    assert [warnings for _, warnings in configs] == [[], []]
    check_apart(whole, [config for config, _ in configs])
