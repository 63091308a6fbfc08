"""kafka-features on a broker alone, and on a cluster that brokers of Apache Kafka 3.9 may join."""

from __future__ import annotations

import re
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.interop.conftest import eventually
from tests.support import jars
from tests.support.brokers.apache import apache_3, apache_4
from tests.support.brokers.broker_process import BrokerError
from tests.support.brokers.ours import ours
from tests.support.brokers.zookeeper import ZooKeeperServer
from tests.support.tools import Tools

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.brokers.broker_process import BrokerProcess
    from tests.support.tools import Outcome

pytestmark = pytest.mark.slow

DESCRIBED = re.compile(
    r"Feature: (\S+)\s+SupportedMinVersion: (\S+)\s+SupportedMaxVersion: (\S+)\s+"
    r"FinalizedVersionLevel: (\S+)\s+Epoch: (\S+)"
)
OF_APACHE_ALONE = {
    *("eligible.leader.replicas.version", "kraft.version", "metadata.version"),
}
NEWEST = {
    "group.version": ("0", "1", "1"),
    "share.version": ("0", "1", "1"),
    "streams.version": ("0", "1", "1"),
    "transaction.version": ("0", "2", "2"),
}
CHANGES = (
    ("upgrade", "--feature", "group.version=2"),
    ("upgrade", "--feature", "group.version=0"),
    ("downgrade", "--feature", "group.version=0", "--dry-run"),
    ("downgrade", "--feature", "transaction.version=1", "--feature", "group.version=0"),
    ("downgrade", "--feature", "transaction.version=2"),
    ("upgrade", "--feature", "nobodys.version=1"),
    ("disable", "--feature", "share.version", "--unsafe"),
    ("upgrade", "--feature", "transaction.version=2", "--feature", "group.version=9"),
    ("upgrade", "--feature", "transaction.version=2", "--feature", "group.version=1"),
)


def features(tools: Tools, bootstrap: str, *words: str) -> Outcome:
    return tools.run("features", "--bootstrap-server", bootstrap, *words)


def described(tools: Tools, bootstrap: str) -> dict[str, tuple[str, ...]]:
    """Return the tool's output on each feature, without the epoch."""
    rows = DESCRIBED.findall(features(tools, bootstrap, "describe").output)
    return {name: tuple(cells[:3]) for name, *cells in rows if name not in OF_APACHE_ALONE}


def walk(tools: Tools, broker: BrokerProcess) -> list[object]:
    """Return the tool's output on each change, and the features after it."""
    said: list[object] = [described(tools, broker.bootstrap)]
    for words in CHANGES:
        outcome = features(tools, broker.bootstrap, *words)
        said += [words, outcome.exit_code, sorted(outcome.lines), outcome.errors]
        said.append(described(tools, broker.bootstrap))
    return said


def without_dead_letters(said: object) -> object:
    """The same, but for level 2 of `share.version` (KIP-1191), which ours lacks: see GAPS.md."""
    if not isinstance(said, dict):
        return said
    lowest, highest, level = said["share.version"]
    assert highest == "2"
    return said | {"share.version": (lowest, "1", min(level, "1"))}


@pytest.fixture(scope="module")
def tools_4() -> Iterator[Tools]:
    tools = Tools(jars.KAFKA_4)
    yield tools
    tools.close()


def test_kafka_features_output_equals_that_on_apache(tools_4: Tools, tmp_path: Path) -> None:
    walks = []
    for start in (ours, apache_4):
        broker = start(tmp_path / start.__name__)
        broker.start()
        try:
            walks.append(walk(tools_4, broker))
        finally:
            broker.kill()

    assert walks[0] == [without_dead_letters(said) for said in walks[1]]
    assert walks[0][0] == NEWEST


def test_levels_outlive_the_broker(tools_3: Tools, tmp_path: Path) -> None:
    broker = ours(tmp_path)
    broker.start()
    try:
        lowered = features(tools_3, broker.bootstrap, "disable", "--feature", "group.version")
        assert lowered.exit_code == 0
        broker.stop()
        broker.start()
        assert described(tools_3, broker.bootstrap) == NEWEST | {"group.version": ("0", "1", "0")}
    finally:
        broker.kill()


@pytest.mark.slow
def test_no_feature_is_finalised_with_a_broker_of_apache_3(tools_3: Tools, tmp_path: Path) -> None:
    zookeeper = ZooKeeperServer(tmp_path / "zookeeper")
    here = ours(tmp_path / "ours", {"zookeeper.connect": zookeeper.address, "broker.id": "1"})
    there = apache_3(tmp_path / "apache", zookeeper.port, {"broker.id": "2"})
    raise_level = ("upgrade", "--feature", "group.version=1")
    with ExitStack() as stack:
        for process in (zookeeper, there, here):
            stack.callback(process.kill)
        zookeeper.start()
        here.start()
        there.start()
        refused = features(tools_3, here.bootstrap, *raise_level)
        assert refused.exit_code == 1
        assert "Broker 2 does not support this feature." in refused.output

        there.stop()
        eventually(lambda: features(tools_3, here.bootstrap, *raise_level).exit_code == 0)
        assert described(tools_3, here.bootstrap)["group.version"] == ("0", "1", "1")
        with pytest.raises(BrokerError, match="ended while starting"):
            there.start()
