"""Consumers that read from the replica next to them (KIP-392), and what followers refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from broker.fetch.replica_selection import RACK_AWARE
from config.broker import BrokerConfig
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchRequest
from protocol.messages.list_offsets import ListOffsetsRequest
from protocol.messages.update_metadata import UpdateMetadataRequest
from protocol.records.control import ControlType
from storage.append.append_source import FROM_CLIENT, FROM_COORDINATOR
from tests.broker.replica_fetchers.nodes import TOPIC, Ensemble, Node, run_ensemble
from tests.storage.produced import NOW_MS, TOPIC_ID, Producer, batch, marker

if TYPE_CHECKING:
    from pathlib import Path

ALL = (0, 1, 2)
LATEST = -1
LEADER_ONLY = "org.apache.kafka.common.replica.LeaderSelector"
RACKS = {0: "north", 1: "south", 2: "south"}
Live = UpdateMetadataRequest.LiveBroker


def tell_racks(nodes: Ensemble, racks: dict[int, str | None] | None = None) -> None:
    """Give all nodes racks and a selector by rack."""
    for node in nodes.nodes.values():
        node.services.config = BrokerConfig(replica_selector_class=RACK_AWARE)
        node.metadata.update(
            UpdateMetadataRequest(
                controller_id=0,
                controller_epoch=1,
                topic_states=[],
                live_brokers=[
                    Live(
                        id=one,
                        endpoints=[
                            Live.Endpoint(
                                port=9092, host="h", listener="PLAINTEXT", security_protocol=0
                            )
                        ],
                        rack=rack,
                    )
                    for one, rack in (racks or RACKS).items()
                ],
            )
        )


async def fetch(node: Node, offset: int, rack: str = "", version: int = 12, **fields: Any) -> Any:
    """The answer for the one partition."""
    wanted = FetchRequest.Topic.Partition(
        partition=0,
        fetch_offset=offset,
        partition_max_bytes=1 << 20,
        current_leader_epoch=fields.pop("epoch", -1),
    )
    request = FetchRequest(
        max_wait_ms=fields.pop("max_wait_ms", 0),
        min_bytes=1,
        max_bytes=1 << 20,
        session_id=fields.pop("session_id", 0),
        session_epoch=fields.pop("session_epoch", -1),
        topics=[FetchRequest.Topic(topic=TOPIC, topic_id=TOPIC_ID, partitions=[wanted])],
        isolation_level=fields.pop("isolation_level", 0),
        rack_id=rack,
    )
    response: Any = await node.answer(request, version)
    ((answer,),) = (topic.partitions for topic in response.responses)
    return answer


async def latest(node: Node, replica_id: int = -1, version: int = 9) -> tuple[ErrorCode, int]:
    wanted = ListOffsetsRequest.Topic.Partition(partition_index=0, timestamp=LATEST)
    request = ListOffsetsRequest(
        replica_id=replica_id,
        topics=[ListOffsetsRequest.Topic(name=TOPIC, partitions=[wanted])],
    )
    response: Any = await node.answer(request, version)
    (answer,) = response.topics[0].partitions
    return ErrorCode(answer.error_code), answer.offset


async def ten_records(nodes: Ensemble) -> None:
    nodes.lead(0, isr=ALL, epoch=0)
    nodes[0].append(10)
    await nodes.until_equal(10)
    followers = nodes[0].partition.machine.in_sync.followers.values()
    await nodes.until(lambda: all(one.log_end_offset == 10 for one in followers))


@pytest.mark.parametrize("version", range(11, 19))
def test_leader_names_the_follower_in_the_consumers_rack(version: int, tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        await ten_records(nodes)
        tell_racks(nodes)

        answer = await fetch(nodes[0], 3, "south", version)

        assert answer.error_code == ErrorCode.NONE
        assert answer.preferred_read_replica in {1, 2}
        assert not answer.records
        assert answer.high_watermark == 10
        read = await fetch(nodes[answer.preferred_read_replica], 3, "south", version)
        assert read.preferred_read_replica == -1
        assert len(read.records) > 0

    run_ensemble(tmp_path, scenario)


def test_a_session_with_nothing_else_to_say_names_the_nearer_replica(tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        await ten_records(nodes)
        wanted = FetchRequest.Topic.Partition(
            partition=0, fetch_offset=10, partition_max_bytes=1 << 20
        )
        opening = FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            session_epoch=0,
            topics=[FetchRequest.Topic(topic_id=TOPIC_ID, partitions=[wanted])],
            rack_id="south",
        )
        opened: Any = await nodes[0].answer(opening, 13)
        assert opened.responses[0].partitions[0].high_watermark == 10

        tell_racks(nodes)
        further = FetchRequest(
            max_wait_ms=10_000,
            min_bytes=1,
            session_id=opened.session_id,
            session_epoch=1,
            topics=[],
            rack_id="south",
        )
        response: Any = await nodes[0].answer(further, 13)

        ((answer,),) = (topic.partitions for topic in response.responses)
        assert answer.preferred_read_replica in {1, 2}

    run_ensemble(tmp_path, scenario)


@pytest.mark.parametrize("rack", ["", "north", "elsewhere"])
def test_leader_serves_consumers_without_a_nearer_replica(rack: str, tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        await ten_records(nodes)
        tell_racks(nodes)

        answer = await fetch(nodes[0], 3, rack)

        assert answer.preferred_read_replica == -1
        assert len(answer.records) > 0

    run_ensemble(tmp_path, scenario)


@pytest.mark.parametrize("selector", [None, LEADER_ONLY, "com.example.Selector"])
def test_preferred_read_replica_needs_the_rack_aware_selector(
    selector: str | None, tmp_path: Path
) -> None:
    async def scenario(nodes: Ensemble) -> None:
        await ten_records(nodes)
        tell_racks(nodes)
        nodes[0].services.config = BrokerConfig(replica_selector_class=selector)

        assert len((await fetch(nodes[0], 3, "south")).records) > 0

    run_ensemble(tmp_path, scenario)


def test_followers_that_lag_or_are_dead_are_not_named(tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        await ten_records(nodes)
        tell_racks(nodes, {0: "north", 2: "south"})
        assert (await fetch(nodes[0], 3, "south")).preferred_read_replica == 2

        nodes[2].following.stop()
        nodes[0].append(5)
        assert (await fetch(nodes[0], 12, "south")).preferred_read_replica == -1
        nodes.lead(0, isr=(0, 1), epoch=1, told=(0,))
        assert (await fetch(nodes[0], 3, "south")).preferred_read_replica == -1

    run_ensemble(tmp_path, scenario)


def test_consumer_that_waits_in_a_session_is_sent_on_at_once(tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        await ten_records(nodes)
        tell_racks(nodes)

        answer = await fetch(nodes[0], 10, "south", max_wait_ms=60_000, session_epoch=0)

        assert answer.preferred_read_replica in {1, 2}

    run_ensemble(tmp_path, scenario)


def test_follower_serves_what_it_knows_to_be_committed(tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        await ten_records(nodes)
        nodes[2].following.stop()
        nodes[0].append(5)
        await nodes.until(lambda: nodes[1].offsets == (10, 15))

        answer = await fetch(nodes[1], 10)
        assert (answer.error_code, answer.high_watermark) == (ErrorCode.NONE, 10)
        assert not answer.records
        assert not (await fetch(nodes[1], 15)).records
        assert (await fetch(nodes[1], 16)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE

    run_ensemble(tmp_path, scenario)


def test_follower_wakes_its_readers(tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        await ten_records(nodes)
        reading = nodes.spawn(fetch(nodes[1], 10, max_wait_ms=60_000), "reader")
        await nodes[0].timers.sleep(20)
        assert not reading.done()

        nodes[0].append(5)

        await nodes.until(reading.done)
        assert len(reading.result().records) > 0

    run_ensemble(tmp_path, scenario)


def test_follower_knows_which_transactions_are_open_and_aborted(tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        await ten_records(nodes)
        producer = Producer(7, is_transactional=True)
        origin = FROM_CLIENT
        nodes[0].partition.append_records(batch(3, producer=producer), -1, origin, NOW_MS)
        await nodes.until_equal(13)
        open_one = await fetch(nodes[1], 10, isolation_level=1)
        assert (open_one.last_stable_offset, len(open_one.records)) == (10, 0)

        ending = marker(producer, ControlType.ABORT)
        nodes[0].partition.append_records(ending, -1, FROM_COORDINATOR, NOW_MS)
        await nodes.until_equal(14)

        aborted = await fetch(nodes[1], 10, isolation_level=1)
        assert aborted.last_stable_offset == 14
        assert [one.first_offset for one in aborted.aborted_transactions] == [10]

    run_ensemble(tmp_path, scenario)


@pytest.mark.parametrize(
    ("version", "epoch", "code"),
    [
        (10, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (10, 2, ErrorCode.FENCED_LEADER_EPOCH),
        (12, 2, ErrorCode.FENCED_LEADER_EPOCH),
        (12, 4, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (12, 3, ErrorCode.NONE),
    ],
)
def test_follower_refuses_old_clients_and_other_epochs(
    version: int, epoch: int, code: ErrorCode, tmp_path: Path
) -> None:
    async def scenario(nodes: Ensemble) -> None:
        nodes.lead(0, isr=ALL, epoch=3)

        assert (await fetch(nodes[1], 0, version=version, epoch=epoch)).error_code == code

    run_ensemble(tmp_path, scenario)


def test_latest_offset_is_unavailable_until_the_new_leader_commits(tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        await ten_records(nodes)
        nodes[2].following.stop()
        nodes[0].append(5)
        await nodes.until(lambda: nodes[1].offsets == (10, 15))
        nodes[0].is_up = False

        nodes.lead(1, isr=(1, 2), epoch=1, told=(1,))
        assert await latest(nodes[1]) == (ErrorCode.OFFSET_NOT_AVAILABLE, -1)
        assert await latest(nodes[1], version=4) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
        assert await latest(nodes[1], replica_id=2) == (ErrorCode.NONE, 15)

        nodes.lead(1, isr=(1, 2), epoch=1, told=(2,))
        await nodes.until(lambda: nodes[1].offsets == (15, 15))
        assert await latest(nodes[1]) == (ErrorCode.NONE, 15)

    run_ensemble(tmp_path, scenario)


def test_a_follower_answers_list_offsets_only_to_replica_id_minus_2(tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        await ten_records(nodes)

        assert await latest(nodes[1]) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
        assert await latest(nodes[1], replica_id=-2) == (ErrorCode.NONE, 10)

    run_ensemble(tmp_path, scenario)
