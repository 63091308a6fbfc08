"""Requests that a fault strikes, and how often."""

from __future__ import annotations

from broker.embedded.faults.active_faults import ActiveFaults
from broker.embedded.faults.fault import Fault, Mischief
from broker.embedded.faults.request_topics import topics_of
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchRequest
from protocol.messages.metadata import MetadataRequest
from protocol.messages.produce import ProduceRequest
from protocol.uuids import from_random_bytes

DISCONNECT = Mischief.DISCONNECT


def strikes(faults: ActiveFaults, topics: set[str] = frozenset(), client: str = "me") -> bool:  # type: ignore[assignment]
    return faults.strike(ProduceRequest, client, lambda: topics) is not None


def test_a_fault_strikes_the_configured_number_of_times() -> None:
    faults = ActiveFaults()
    number = faults.add(Fault(DISCONNECT, ProduceRequest, times=2))

    assert [strikes(faults) for _ in range(4)] == [True, True, False, False]
    assert faults.count(number) == 2


def test_a_removed_fault_stops_and_keeps_its_count() -> None:
    faults = ActiveFaults()
    number = faults.add(Fault(DISCONNECT, ProduceRequest))
    assert strikes(faults)

    faults.remove(number)

    assert not strikes(faults)
    assert faults.count(number) == 1


def test_the_first_matching_fault_strikes_until_used_up() -> None:
    faults = ActiveFaults()
    first = faults.add(Fault(DISCONNECT, ProduceRequest, times=1))
    second = faults.add(Fault(Mischief.FAIL, None, ErrorCode.INVALID_RECORD))

    assert [strikes(faults) for _ in range(3)] == [True] * 3
    assert (faults.count(first), faults.count(second)) == (1, 2)


def test_a_fault_strikes_only_its_own_api_topic_and_client() -> None:
    for fault, expected in (
        (Fault(DISCONNECT, FetchRequest), False),
        (Fault(DISCONNECT, None), True),
        (Fault(DISCONNECT, ProduceRequest, topic="orders"), True),
        (Fault(DISCONNECT, ProduceRequest, topic="invoices"), False),
        (Fault(DISCONNECT, ProduceRequest, client_id="me"), True),
        (Fault(DISCONNECT, ProduceRequest, client_id="you"), False),
    ):
        faults = ActiveFaults()
        faults.add(fault)
        assert strikes(faults, {"orders"}) == expected, fault


def test_topics_are_found_by_name_and_by_id() -> None:
    topic_id = from_random_bytes(bytes(range(16)))
    topic = FetchRequest.Topic(topic_id=topic_id, partitions=[])
    fetch = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[topic])
    metadata = MetadataRequest(topics=[MetadataRequest.Topic(name="orders")])

    assert topics_of(fetch, {topic_id: "invoices"}) == {"invoices"}
    assert topics_of(fetch, {}) == set()
    assert topics_of(metadata, {}) == {"orders"}
    assert topics_of(MetadataRequest(topics=None), {}) == set()
