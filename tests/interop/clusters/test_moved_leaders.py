"""Clients of a partition whose leader has changed: the answer that refuses them names the next."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.cimpl import NewTopic
from kazoo.client import KazooClient

from protocol.errors import ErrorCode
from protocol.headers import request_front, response_header_bytes
from protocol.messages.fetch import FetchRequest
from protocol.messages.metadata import MetadataRequest
from protocol.messages.produce import ProduceRequest
from protocol.records.builder import NewRecord, build_batch
from tests.interop.clients.java import run_scenarios
from tests.interop.conftest import eventually
from tests.support import jars
from tests.support.wire import RawConnection

if TYPE_CHECKING:
    from protocol.schema import Request
    from tests.interop.conftest import NewName
    from tests.support.brokers.trio import Trio

METADATA_VERSION, FETCH_VERSION, PRODUCE_VERSION = 12, 17, 13
WAIT_SECONDS = 30.0
CLIENTS = {"producer": "[0, 1]", "consumer": "[1, 1]"}
"""Offsets of the records sent, and numbers of those read, before and after the move."""
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


def ask(port: int, request: Request, version: int) -> Any:
    cls = type(request)
    body = request.encode(version)
    frame = bytes(request_front(1, cls.API_KEY, version, b"raw", len(body))) + bytes(body)
    with RawConnection.open(port, WAIT_SECONDS) as connection:
        connection.send(frame)
        answer = connection.receive()
    start = response_header_bytes(cls.API_KEY, version)
    return cls.RESPONSE.decode_from(version, memoryview(answer), start)[0]


def leaders(port: int, topic: str) -> tuple[Any, list[int]]:
    """The topic's id, and who leads its partitions, as one broker knows them."""
    wanted = [MetadataRequest.Topic(name=topic)]
    (found,) = ask(port, MetadataRequest(topics=wanted), METADATA_VERSION).topics
    in_order = sorted(found.partitions, key=lambda one: one.partition_index)
    return found.topic_id, [one.leader_id for one in in_order]


def fetch(topic_id: Any, count: int) -> FetchRequest:
    kind = FetchRequest.Topic
    partitions = [
        kind.Partition(partition=index, fetch_offset=0, partition_max_bytes=1000)
        for index in range(count)
    ]
    topics = [kind(topic_id=topic_id, partitions=partitions)]
    return FetchRequest(max_wait_ms=0, min_bytes=1, topics=topics)


def produce(topic_id: Any, count: int, now_ms: int) -> ProduceRequest:
    kind = ProduceRequest.TopicData
    batch = bytes(build_batch([NewRecord(now_ms, b"key", b"value")]))
    data = [kind.PartitionData(index=index, records=batch) for index in range(count)]
    topics = [kind(topic_id=topic_id, partition_data=data)]
    return ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics)


def test_each_broker_names_the_others_with_their_endpoints(trio: Trio, new_name: NewName) -> None:
    topic = new_name("led")
    assignment = [[0], [1], [1], [2]]
    new = NewTopic(topic, len(assignment), replica_assignment=assignment)
    trio.admin.create_topics([new])[topic].result(WAIT_SECONDS)
    expected = [replicas[0] for replicas in assignment]
    ports = [broker.port for broker in trio.brokers]
    for port in ports:
        eventually(lambda: leaders(port, topic)[1] == expected)  # noqa: B023
    topic_id, _ = leaders(ports[0], topic)

    for here, port in enumerate(ports):
        fetched = ask(port, fetch(topic_id, len(expected)), FETCH_VERSION)
        produced = ask(port, produce(topic_id, len(expected), 1_700_000_000_000), PRODUCE_VERSION)

        answers = fetched.responses[0].partitions, produced.responses[0].partition_responses
        for response, told in zip((fetched, produced), answers, strict=True):
            named = [
                one.current_leader.leader_id if one.error_code == NOT_LEADER else here
                for one in told
            ]
            assert named == expected
            assert all(
                one.current_leader.leader_epoch >= 0 for one in told if one.error_code == NOT_LEADER
            )
            assert sorted(
                (one.node_id, one.host, one.port, one.rack) for one in response.node_endpoints
            ) == [
                (other, "127.0.0.1", ports[other], f"rack-{other}")
                for other in range(len(ports))
                if other != here
            ]


@pytest.fixture(scope="module")
def results(shared_trio: Trio) -> dict[str, str]:
    """Return the output of all scenarios, run in one JVM."""
    shared_trio.heal()
    for client in CLIENTS:
        let_broker_1_be_preferred(shared_trio, f"java-{jars.KAFKA_4}-{client}")
    return run_scenarios(jars.KAFKA_4, "MovedLeader", shared_trio.bootstrap, list(CLIENTS))


def let_broker_1_be_preferred(trio: Trio, topic: str) -> None:
    """Create a topic that broker 0 leads, and wait until no broker waits for another epoch."""
    new = NewTopic(topic, 1, replica_assignment=[[0, 1]])
    trio.admin.create_topics([new])[topic].result(WAIT_SECONDS)
    wanted = {"topic": topic, "partition": 0, "replicas": [1, 0]}
    nodes = KazooClient(trio.zookeeper.address)
    nodes.start()

    def is_settled() -> bool:
        assigned = json.loads(nodes.get(f"/brokers/topics/{topic}")[0])
        state = f"/brokers/topics/{topic}/partitions/0/state"
        if assigned["partitions"] != {"0": [1, 0]} or nodes.exists(state) is None:
            return False
        stored = json.loads(nodes.get(state)[0])
        return nodes.exists("/admin/reassign_partitions") is None and all(
            led(broker.port, topic) == (0, stored["leader_epoch"]) for broker in trio.brokers
        )

    try:
        eventually(lambda: led(trio.brokers[0].port, topic)[0] == 0)
        plan = json.dumps({"version": 1, "partitions": [wanted]}).encode()
        nodes.create("/admin/reassign_partitions", plan)
        eventually(is_settled)
    finally:
        nodes.stop()
        nodes.close()


def led(port: int, topic: str) -> tuple[int, int]:
    """Leader and leader epoch of the first partition, as one broker knows them."""
    wanted = [MetadataRequest.Topic(name=topic)]
    (found,) = ask(port, MetadataRequest(topics=wanted), METADATA_VERSION).topics
    if not found.partitions:
        return -1, -1
    return found.partitions[0].leader_id, found.partitions[0].leader_epoch


@pytest.mark.parametrize("client", CLIENTS)
def test_kafka_clients_go_on_without_asking_for_metadata(
    results: dict[str, str], client: str
) -> None:
    assert results.get(client, "never ran") == CLIENTS[client], results["stderr"]
