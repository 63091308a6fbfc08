"""An observer beside Apache Kafka's own controllers: the same bytes, the same image."""

from __future__ import annotations

import re
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.cimpl import NewPartitions, NewTopic

from protocol.metadata_log.snapshots import SnapshotContent, SnapshotId
from storage.metadata_log import quorum_state
from storage.metadata_log.snapshot_files import name_of, parse_name
from tests.interop.metadata_log.observing import (
    NODE_ID,
    Observing,
    batches_of,
    cluster_id_of,
    meta_properties,
    quorum_of,
)
from tests.interop.metadata_log.test_image_of_apache import image_of_snapshot
from tests.support import jars
from tests.support.brokers.apache import PROTOCOL_MAP, STANDALONE, apache_4
from tests.support.brokers.broker_process import BrokerProcess, free_port, write_properties
from tests.support.java_command import java_command
from tests.support.processes.waiting import wait_until
from tests.support.tools import Tools

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from controller.image.topics import Topic

pytestmark = [pytest.mark.interop, pytest.mark.java, pytest.mark.slow]

TIMEOUT_SECONDS = 60
COMPLAINTS = re.compile(r"mismatch|invalid|corrupt|not valid|out of order|error", re.IGNORECASE)


@pytest.fixture(
    params=[(jars.KAFKA_4, "dynamic"), (jars.KAFKA_4_3, "static")],
    ids=" ".join,
)
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerProcess]:
    """A node that makes snapshots often, with voters that are configured or in the log."""
    version, quorum = request.param
    properties = {
        "metadata.log.max.record.bytes.between.snapshots": "3000",
        "metadata.max.idle.interval.ms": "100",
    }
    if quorum == "dynamic":
        properties["controller.quorum.bootstrap.servers"] = f"127.0.0.1:{free_port()}"
    node = apache_4(tmp_path / "node", properties, version=version)
    node.start()
    yield node
    node.stop()


@pytest.fixture
def follower(node: BrokerProcess, tmp_path: Path) -> Iterator[Observing]:
    """An observer, not yet started."""
    observing = Observing(tmp_path / "observer", node)
    yield observing
    observing.stop()


def metadata_directory(node: BrokerProcess) -> Path:
    return node.data_directory / "__cluster_metadata-0"


def snapshots_of(node: BrokerProcess) -> dict[SnapshotId, Path]:
    """By id, without the one of the formatting."""
    parsed = ((parse_name(path.name), path) for path in metadata_directory(node).iterdir())
    return {one: path for one, path in parsed if one is not None and one.end_offset}


def make_topic(node: BrokerProcess, name: str) -> None:
    """A topic with configurations, more partitions than at first, and one that is deleted."""
    client = AdminClient({"bootstrap.servers": node.bootstrap})
    topic = NewTopic(name, 3, config={"retention.ms": "1000"})
    for one in (topic, NewTopic(f"{name}-gone", 2)):
        client.create_topics([one])[one.topic].result(TIMEOUT_SECONDS)
    client.delete_topics([f"{name}-gone"])[f"{name}-gone"].result(TIMEOUT_SECONDS)
    client.create_partitions([NewPartitions(name, 5)])[name].result(TIMEOUT_SECONDS)
    entry = ConfigEntry("segment.ms", "77000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=[entry])
    client.incremental_alter_configs([resource])[resource].result(TIMEOUT_SECONDS)


def wait_for_topic(follower: Observing, name: str) -> Topic:
    """The topic as the observer's image has it at last, with all that `make_topic` does."""

    def is_complete() -> bool:
        topic = follower.image.topics.named(name)
        configs = follower.image.configs.get((2, name), {})  # type: ignore[call-overload]
        return topic is not None and len(topic.partitions) == 5 and "segment.ms" in configs

    assert wait_until(is_complete, TIMEOUT_SECONDS), follower.image.topics.ids
    topic = follower.image.topics.named(name)
    assert topic is not None
    return topic


def same_batches(follower: Observing, node: BrokerProcess) -> int:
    """Count the batches that both have on the disk, each of which must have the same bytes."""
    ours = batches_of(follower.metadata_directory)
    theirs = batches_of(metadata_directory(node))
    assert ours, "the observer has fetched something"
    common = [offset for offset in ours if offset >= min(theirs)]
    for offset in common:
        assert ours[offset] == theirs[offset], f"batch at offset {offset}"
    return len(common)


def test_log_has_apaches_bytes_and_the_image_what_was_made(
    node: BrokerProcess, follower: Observing
) -> None:
    follower.start()
    assert wait_until(lambda: follower.has_caught_up, TIMEOUT_SECONDS)
    for name in ("one", "two"):
        make_topic(node, name)
        topic = wait_for_topic(follower, name)
        assert {one.leader for one in topic.partitions.values()} == {0}
    assert sorted(follower.image.topics.ids) == ["one", "two"]
    assert follower.feed.loader.fault_count == 0
    election = follower.observer.election
    follower.stop()

    assert same_batches(follower, node) > 10
    written = (follower.metadata_directory / "quorum-state").read_bytes()
    state = quorum_state.decode(written)
    assert (state.leader_epoch, state.leader_id) == election
    metadata = (follower.metadata_directory / "partition.metadata").read_bytes()
    assert metadata == (metadata_directory(node) / "partition.metadata").read_bytes()
    epochs = (follower.metadata_directory / "leader-epoch-checkpoint").read_bytes()
    assert epochs == (metadata_directory(node) / "leader-epoch-checkpoint").read_bytes()


def test_image_is_that_of_apaches_snapshot_at_the_same_offset(
    node: BrokerProcess, follower: Observing
) -> None:
    follower.start()
    for name in ("one", "two"):
        make_topic(node, name)
        wait_for_topic(follower, name)
    made = follower.feed.next_offset

    def newer() -> list[SnapshotId]:
        return [one for one in snapshots_of(node) if one.end_offset >= made]

    assert wait_until(lambda: bool(newer()), TIMEOUT_SECONDS)
    newest = min(newer())
    assert wait_until(lambda: follower.feed.next_offset >= newest.end_offset, TIMEOUT_SECONDS)
    follower.stop()

    of_snapshot = image_of_snapshot(snapshots_of(node)[newest])
    assert follower.image.topics.ids == of_snapshot.topics.ids
    for part in ("features", "brokers", "controllers", "topics", "configs", "next_producer_id"):
        assert getattr(follower.image, part) == getattr(of_snapshot, part), part


def test_late_observer_fetches_the_snapshot_of_what_was_compacted_away(
    node: BrokerProcess, tmp_path: Path
) -> None:
    make_topic(node, "one")
    assert wait_until(lambda: bool(snapshots_of(node)), TIMEOUT_SECONDS)
    keys = {"controller_quorum_fetch_snapshot_max_bytes": 700}
    late = Observing(tmp_path / "late", node, **keys)
    late.start()
    try:
        assert wait_until(lambda: late.has_caught_up, TIMEOUT_SECONDS)
        wait_for_topic(late, "one")
        make_topic(node, "two")
        wait_for_topic(late, "two")
    finally:
        late.stop()

    first = late.log.log.log_start_offset
    (snapshot_id,) = [one for one in late.log.snapshots.ids if one.end_offset == first]
    path = late.metadata_directory / snapshots_of(node)[snapshot_id].name
    assert path.stat().st_size > 700
    assert path.read_bytes() == snapshots_of(node)[snapshot_id].read_bytes()
    assert min(batches_of(late.metadata_directory)) == snapshot_id.end_offset
    assert same_batches(late, node) > 0


def test_observer_follows_through_restarts_and_deaths_of_the_leader(
    node: BrokerProcess, follower: Observing
) -> None:
    follower.start()
    make_topic(node, "one")
    wait_for_topic(follower, "one")
    epochs = [follower.observer.election.epoch]
    for end in (node.stop, node.kill):
        end()
        node.start()
        name = f"topic {len(epochs)}".replace(" ", "-")
        make_topic(node, name)
        wait_for_topic(follower, name)
        epochs.append(follower.observer.election.epoch)
    follower.stop()
    assert epochs == sorted(set(epochs)), "each start is an epoch"
    assert same_batches(follower, node) > 10


def test_observer_goes_on_after_its_own_restart(node: BrokerProcess, follower: Observing) -> None:
    follower.start()
    make_topic(node, "one")
    wait_for_topic(follower, "one")
    follower.stop()
    make_topic(node, "two")
    follower.start()
    wait_for_topic(follower, "one")
    wait_for_topic(follower, "two")
    follower.stop()
    assert same_batches(follower, node) > 10


def apache_broker_on(directory: Path, node: BrokerProcess) -> BrokerProcess:
    """Apache's broker with the node id of the observer, on its files, beside the node."""
    port = free_port()
    broker = BrokerProcess("Apache broker", [], directory, port)
    config = write_properties(
        directory / "server.properties",
        {
            "process.roles": "broker",
            "node.id": str(NODE_ID),
            **quorum_of(node),
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": PROTOCOL_MAP,
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "log.dirs": str(broker.data_directory),
            **STANDALONE,
        },
    )
    broker.command = java_command(jars.KAFKA_4, "kafka.Kafka", str(config))
    return broker


def test_snapshot_of_ours_is_read_by_apaches_tool_and_its_broker(
    node: BrokerProcess, tmp_path: Path
) -> None:
    directory = tmp_path / "apache"
    keys = {"metadata_log_max_record_bytes_between_snapshots": 2000}
    follower = Observing(directory / "data", node, **keys)
    follower.start()
    try:
        make_topic(node, "one")
        wait_for_topic(follower, "one")
        assert wait_until(lambda: len(follower.log.snapshots.ids) > 1, TIMEOUT_SECONDS)
        make_topic(node, "two")
        wait_for_topic(follower, "two")
    finally:
        follower.stop()
    newest = follower.log.snapshots.newest
    assert newest is not None
    path = follower.metadata_directory / name_of(newest)
    content = SnapshotContent(path.read_bytes())
    assert list(content.read())
    with closing(Tools(jars.KAFKA_4)) as tools:
        options = ("--cluster-metadata-decoder", "--files", str(path))
        said = tools.check("dump-log", *options).output
    assert not COMPLAINTS.search(said.replace("isvalid: true", "")), said
    assert said.count('"type":') >= len(content.records)
    written = path.read_bytes()

    (directory / "data" / "meta.properties").write_text(meta_properties(cluster_id_of(node)))
    broker = apache_broker_on(directory, node)
    broker.start()
    try:
        topics = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=60).topics
        assert topics.keys() >= {"one", "two"}
        assert path.read_bytes() == written
    finally:
        broker.stop()
    assert same_batches(follower, node) > 0
