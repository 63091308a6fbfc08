"""The wheel in an environment of its own, run where its user has modules of the same names."""

from __future__ import annotations

import json
import re
import subprocess
import zipfile
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer

from tests.support.brokers.apache import STANDALONE
from tests.support.brokers.broker_process import BrokerProcess, free_port, write_properties
from tests.support.jars import REPOSITORY
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.process
SECONDS = 60
ROOTS = {"broker", "kafka_broker_python"}
USERS = (
    "broker",
    "config",
    "controller",
    "coordinator",
    "jwt",
    "protocol",
    "queue",
    "rich",
    "storage",
)
IN_A_PROCESS = """
import pytest
from broker.testing import Produce
from confluent_kafka import Producer

@pytest.mark.kafka(isolation="process")
def test_in_a_process(kafka_broker, kafka_topic):
    producer = Producer(kafka_broker.client_config)
    producer.produce(kafka_topic, "one")
    assert producer.flush(20) == 0
    assert kafka_broker.requests.of(Produce)[0].acks == -1
"""
LOUD = "raise SystemExit('somebody else\\'s module is imported: ' + __name__)\n"


@pytest.fixture(scope="session")
def users_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory of modules named like ours, or like those that ours import."""
    directory = tmp_path_factory.mktemp("user")
    for name in USERS:
        directory.joinpath(f"{name}.py").write_text(LOUD)
    (directory / "storage").mkdir()
    (directory / "storage" / "__init__.py").write_text(LOUD)
    return directory


@pytest.fixture
def broker(environment: Path, users_directory: Path, tmp_path: Path) -> Iterator[BrokerProcess]:
    """The installed broker, started in that directory; it compacts what it can at once."""
    port = free_port()
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": str(tmp_path / "data"),
        "log.cleaner.backoff.ms": "50",
        "log.cleaner.min.cleanable.ratio": "0",
        "log.cleanup.policy": "compact",
        "log.segment.bytes": "10000",
        **STANDALONE,
    }
    path = write_properties(tmp_path / "server.properties", settings)
    process = BrokerProcess(name="installed", command=[], directory=tmp_path, port=port)
    process.command = [str(environment / "bin" / "kafka-broker-python"), "--config", str(path)]
    process.working_directory = users_directory
    process.start()
    yield process
    process.stop()


def _said(directory: Path, *command: str) -> str:
    ended = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.slow
def test_pytest_finds_the_plugin_and_documented_tests_pass(
    environment: Path, users_directory: Path
) -> None:
    text = (REPOSITORY / "docs" / "testing.md").read_text(encoding="utf-8")
    tests = users_directory / "tests_of_orders"
    tests.mkdir()
    (name, body), *_ = re.findall(r"```python\n# (\w+\.py)\n(.*?)```", text, re.DOTALL)
    (tests / name).write_text(body)
    (tests / "test_process.py").write_text(IN_A_PROCESS)
    command = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--rootdir=.")

    said = _said(tests, str(environment / "bin" / "python"), "-P", *command)

    assert "3 passed" in said


def test_wheel_holds_two_packages_and_no_other_name(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    roots = {name.partition("/")[0] for name in names}
    assert {root for root in roots if not root.endswith(".dist-info")} == ROOTS
    assert {f"{root}/py.typed" for root in ROOTS} <= set(names)
    assert "kafka_broker_python/config/server.properties" in names


@pytest.mark.slow
def test_the_sdist_makes_the_same_wheel_to_the_byte(
    built: Callable[..., Path], wheel: Path, tmp_path: Path
) -> None:
    archive = built("sdist", tmp_path / "sdist")
    subprocess.run(["tar", "-xzf", archive], cwd=tmp_path, timeout=SECONDS, check=True)
    unpacked = tmp_path / archive.name.removesuffix(".tar.gz")
    assert built("wheel", tmp_path / "wheel", unpacked).read_bytes() == wheel.read_bytes()


def test_installed_broker_compacts_and_restarts_beside_a_users_modules_of_the_same_names(
    broker: BrokerProcess,
) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "batch.num.messages": 1})
    for number in range(300):
        producer.produce("users", key="the same", value=f"{number:0100}")
    assert producer.flush(SECONDS) == 0
    said = "log_cleaner: compacted users-0"
    assert wait_until(lambda: said in broker.output_path.read_text(), SECONDS)
    assert broker.stop() == 0
    broker.start()
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "g"}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    consumer.subscribe(["users"])
    first = consumer.poll(SECONDS)
    consumer.close()
    assert first is not None
    assert first.error() is None
    assert (first.offset() or 0) > 0


SUITE = """
import sys
from importlib.machinery import SourceFileLoader

import broker, config
from kafka_broker_python.broker.testing import EmbeddedBroker

def test_fixtures(kafka_broker, kafka_topic):
    assert (broker.OWN, config.OWN) == (True, True)
    assert kafka_broker.topics() == {kafka_topic: 1}

def test_a_process():
    with EmbeddedBroker(isolation="process") as embedded:
        embedded.create_topic("orders")
        assert "orders" in embedded.topics()

def test_its_assertions_are_not_rewritten(kafka_broker):
    app = sys.modules["kafka_broker_python.broker.app"]
    assert type(app.__spec__.loader) is SourceFileLoader
"""


def test_the_plugin_serves_a_suite_whose_own_modules_have_our_names(
    environment: Path, tmp_path: Path
) -> None:
    for name in ("broker", "config", "storage", "protocol"):
        tmp_path.joinpath(f"{name}.py").write_text("OWN = True\n")
    (tmp_path / "test_suite.py").write_text(SUITE)
    python = str(environment / "bin" / "python")
    said = _said(tmp_path, python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_suite.py")
    assert "3 passed" in said


@pytest.mark.parametrize("word", ["node", "key-index", "compiled"])
def test_command_names_itself_in_its_usage(
    environment: Path, users_directory: Path, word: str
) -> None:
    command = str(environment / "bin" / "kafka-broker-python")
    assert _said(users_directory, command, "--help").startswith("usage: kafka-broker-python [-h]")
    usage = _said(users_directory, command, word, "--help")
    assert usage.startswith(f"usage: kafka-broker-python {word} ")


def test_short_names_run_the_same(environment: Path, tmp_path: Path) -> None:
    python = str(environment / "bin" / "python")
    version = _said(tmp_path, python, "-m", "broker", "--version")
    assert version == _said(tmp_path, python, "-m", "kafka_broker_python", "--version")
    assert _said(tmp_path, python, "-m", "broker.node", "--help").startswith(
        "usage: python -m broker.node"
    )


def test_every_module_can_be_imported_by_its_long_name(
    environment: Path, users_directory: Path
) -> None:
    """In a process in which the short ones are somebody else's."""
    folders = ("broker", "compiled", "config", "controller", "coordinator", "protocol", "storage")
    names = sorted(
        "kafka_broker_python."
        + path.relative_to(REPOSITORY).with_suffix("").as_posix().replace("/", ".")
        for folder in folders
        for path in (REPOSITORY / folder).rglob("*.py")
        if path.name != "__main__.py" and "kerberos" not in path.parts
    )
    code = (
        "import importlib, json, sys; [importlib.import_module(n) for n in json.loads(sys.argv[1])]"
    )
    python = str(environment / "bin" / "python")
    _said(users_directory, python, "-P", "-c", code, json.dumps(names))


def test_the_installed_package_is_typed(environment: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from kafka_broker_python.config.loader import load_broker_config\n"
        "config, warnings = load_broker_config('x', [], {})\nreveal_type(config.log_dirs)\n"
    )
    mypy = [str(REPOSITORY / ".venv" / "bin" / "mypy"), "--python-executable"]
    said = _said(tmp_path, *mypy, str(environment / "bin" / "python"), "mine.py")
    assert 'Revealed type is "tuple[str, ...]"' in said.replace("builtins.", "")
