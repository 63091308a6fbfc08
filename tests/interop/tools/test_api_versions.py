"""ApiVersions beside Apache Kafka 4.4.0's: key by key; and the APIs of the quorum."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from protocol.api_keys import ApiKey
from protocol.messages.cluster import (
    AddRaftVoterRequest,
    DescribeQuorumRequest,
    RemoveRaftVoterRequest,
    UnregisterBrokerRequest,
    UnregisterControllerRequest,
)
from protocol.messages.streams_groups import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    TopologyDescription,
)
from tests.interop.security.principals import Principal
from tests.support import wire
from tests.support.brokers.apache import apache_4
from tests.support.brokers.ours import ours
from tests.support.listed_versions import Listed, documented_differences

if TYPE_CHECKING:
    from collections.abc import Iterator

    from protocol.schema import Request
    from tests.support.brokers.broker_process import BrokerProcess

VOTER = UUID(int=5)
Table = dict[ApiKey, Listed]
ERROR_CODE_AND_LENGTH = 10


def listed(broker: BrokerProcess) -> Table:
    """Return the API versions that a broker lists on the wire."""
    with wire.RawConnection.open(broker.port) as connection:
        answer = connection.ask(wire.api_versions_request())
    entries: Iterator[tuple[int, int, int]] = struct.iter_unpack(
        ">hhh", answer[ERROR_CODE_AND_LENGTH:]
    )
    return {ApiKey(key): (lowest, highest) for key, lowest, highest in entries}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[BrokerProcess, ...]]:
    """Return a broker of ours, and a node of Apache Kafka 4.4.0."""
    brokers = tuple(make(tmp_path_factory.mktemp("broker")) for make in (ours, apache_4))
    try:
        for broker in brokers:
            broker.start()
        yield brokers
    finally:
        for broker in brokers:
            broker.kill()


def test_api_versions_differ_from_apaches_exactly_where_gaps_says_so(
    pair: tuple[BrokerProcess, ...],
) -> None:
    here, there = map(listed, pair)

    differences = {
        key: (here.get(key), there.get(key))
        for key in sorted({*here, *there})
        if here.get(key) != there.get(key)
    }
    documented = {key: (row.ours, row.theirs) for key, row in documented_differences().items()}
    assert differences == documented


def quorum(*topics: tuple[str, list[int]]) -> DescribeQuorumRequest:
    topic = DescribeQuorumRequest.Topic
    return DescribeQuorumRequest(
        topics=[
            topic(topic_name=name, partitions=[topic.Partition(partition_index=i) for i in indexes])
            for name, indexes in topics
        ]
    )


def added(cluster_id: str | None) -> AddRaftVoterRequest:
    listener = AddRaftVoterRequest.Listener(name="CONTROLLER", host="localhost", port=1)
    return AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=1000,
        voter_id=4,
        voter_directory_id=VOTER,
        listeners=[listener],
    )


def removed(cluster_id: str | None) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(cluster_id=cluster_id, voter_id=4, voter_directory_id=VOTER)


METADATA = "__cluster_metadata"
ASKED: list[tuple[Request, int]] = [
    (quorum((METADATA, [0])), 0),
    (quorum((METADATA, [0])), 2),
    (quorum((METADATA, [1])), 2),
    (quorum((METADATA, [0, 1])), 2),
    (quorum((METADATA, [])), 2),
    (quorum((METADATA, [0]), ("other", [0])), 2),
    (quorum(("other", [0])), 1),
    (quorum(), 2),
    (added(None), 1),
    (added("wrong"), 0),
    (removed(None), 0),
    (removed("wrong"), 0),
    *((UnregisterBrokerRequest(broker_id=broker_id), 0) for broker_id in (7, -1, 0)),
    *((UnregisterControllerRequest(controller_id=id_), 0) for id_ in (7, -1, 0)),
    (
        StreamsGroupTopologyDescriptionUpdateRequest(
            group_id="g",
            member_id="m",
            topology_epoch=0,
            topology_description=TopologyDescription(subtopologies=[], global_stores=[]),
        ),
        0,
    ),
]


OWN = [
    (r"(high_watermark|log_end_offset)=[1-9]\d*", r"\1=N"),
    (r"(leader_epoch|port)=[1-9]\d*", r"\1=N"),
    (r"timestamp=\d+", "timestamp=N"),
    (r'cluster id "[\w-]{22}"', "cluster id"),
    ("'CONTROLLER'", "'PLAINTEXT'"),
]
"""Permitted differences: the lengths of the logs, and the listener of a controller."""


def test_quorum_of_one_answers_as_apaches(pair: tuple[BrokerProcess, ...]) -> None:
    told: list[list[str]] = []
    for broker in pair:
        client = Principal(broker.port)
        answers = [repr(client.ask(request, version)) for request, version in ASKED]
        client.close()
        for pattern, instead in OWN:
            answers = [re.sub(pattern, instead, answer) for answer in answers]
        told.append(answers)
    assert told[0] == told[1]
