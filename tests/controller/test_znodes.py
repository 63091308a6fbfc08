"""Bytes of znodes, as Apache Kafka 3.9.1 wrote them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller import znodes
from controller.brokers.producer_ids import decode_producer_id_block, encode_producer_id_block
from controller.features.levels import Feature
from controller.znodes import (
    BrokerRegistration,
    Endpoint,
    MalformedZnodeError,
    PartitionState,
    TopicAssignment,
)
from protocol.uuids import ZERO_UUID, from_base64


def test_broker_registration_is_apaches_bytes() -> None:
    data = (
        b'{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
        b'"endpoints":["PLAINTEXT://127.0.0.1:29192"],"rack":"r0","jmx_port":-1,"port":29192,'
        b'"host":"127.0.0.1","version":5,"timestamp":"1795229820263"}'
    )
    registration = BrokerRegistration(
        (Endpoint("PLAINTEXT", "127.0.0.1", 29192),), "r0", 1795229820263
    )
    assert znodes.encode_broker(registration) == data
    assert znodes.decode_broker("/brokers/ids/0", data) == registration


def test_broker_without_rack_or_plaintext_listener() -> None:
    registration = BrokerRegistration((Endpoint("SECURE", "::1", 9093, "SSL"),))
    data = znodes.encode_broker(registration)
    assert b"rack" not in data
    assert b'"port":-1,"host":null' in data
    assert b'"SECURE://[::1]:9093"' in data
    assert znodes.decode_broker("/brokers/ids/0", data) == registration


def test_topic_is_apaches_bytes() -> None:
    data = (
        b'{"partitions":{"0":[1,2,0],"1":[2,0,1]},"topic_id":"sOVtLOzlQ8KMSKRHENxqnQ",'
        b'"adding_replicas":{},"removing_replicas":{},"version":3}'
    )
    topic_id = from_base64("sOVtLOzlQ8KMSKRHENxqnQ")
    assignment = TopicAssignment({0: (1, 2, 0), 1: (2, 0, 1)}, topic_id)
    assert znodes.encode_topic(assignment) == data
    assert znodes.decode_topic("t", data) == assignment


def test_topic_of_version_1_has_no_id() -> None:
    assignment = znodes.decode_topic("t", b'{"version":1,"partitions":{"0":[4]}}')
    assert assignment == TopicAssignment({0: (4,)}, ZERO_UUID)


def test_partition_state_is_apaches_bytes() -> None:
    plain = b'{"controller_epoch":1,"leader":0,"version":1,"leader_epoch":0,"isr":[0]}'
    assert znodes.encode_state(PartitionState(0, 0, (0,), 1)) == plain
    recovering = (
        b'{"controller_epoch":2,"leader":2,"version":1,"leader_recovery_state":1,'
        b'"leader_epoch":12,"isr":[2]}'
    )
    state = PartitionState(2, 12, (2,), 2, is_recovering=True)
    assert znodes.encode_state(state) == recovering
    assert znodes.decode_state("", recovering) == state


def test_features_of_a_broker_are_at_least_1_for_the_sake_of_old_brokers() -> None:
    features = (Feature("a", 0, 1), Feature("b", 2, 3))
    registration = BrokerRegistration((), features=features)
    data = znodes.encode_broker(registration)
    assert data.startswith(
        b'{"features":{"a":{"min_version":1,"max_version":1},'
        b'"b":{"min_version":2,"max_version":3}},'
    )
    read = znodes.decode_broker("", data)
    assert read.features == (Feature("a", 1, 1), Feature("b", 2, 3))
    assert [read.supports("a", level) for level in (0, 1, 2)] == [True, True, False]


def test_small_nodes_are_apaches_bytes() -> None:
    assert znodes.encode_config({}) == b'{"version":1,"config":{}}'
    assert znodes.encode_config_change("topics", "t1") == b'{"version":2,"entity_path":"topics/t1"}'
    assert znodes.encode_cluster_id("KiZ1l6vwRt6LIxwCL5yYnA") == (
        b'{"version":"1","id":"KiZ1l6vwRt6LIxwCL5yYnA"}'
    )
    assert encode_producer_id_block(1, range(1000)) == (
        b'{"version":1,"broker":1,"block_start":"0","block_end":"999"}'
    )
    assert decode_producer_id_block(encode_producer_id_block(1, range(5, 9))) == (range(5, 9))


def test_empty_nodes_hold_nothing() -> None:
    assert decode_producer_id_block(None) is None
    assert decode_producer_id_block(b"") is None
    assert znodes.decode_config("", None) == {}


def test_config_change_of_version_1_is_read() -> None:
    old = b'{"version":1,"entity_type":"topics","entity_name":"t1"}'
    assert znodes.decode_config_change("", old) == "topics/t1"


@given(st.none() | st.binary(max_size=40) | st.sampled_from([b"{}", b"[]", b"1", b'{"isr":3}']))
def test_unreadable_znodes_are_named_in_the_error(data: bytes | None) -> None:
    for decode in (
        lambda: znodes.decode_state("/s", data),
        lambda: znodes.decode_topic("t", data),
        lambda: znodes.decode_broker("/b", data),
        lambda: znodes.decode_cluster_id(data),
        lambda: znodes.decode_controller(data),
    ):
        with pytest.raises(MalformedZnodeError, match="cannot be read"):
            decode()
