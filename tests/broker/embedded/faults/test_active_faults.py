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


def test_it_strikes_as_often_as_it_was_told() -> None:
    faults = ActiveFaults()
    number = faults.add(Fault(DISCONNECT, ProduceRequest, times=2))

    assert [strikes(faults) for _ in range(4)] == [True, True, False, False]
    assert faults.count(number) == 2


def test_one_that_is_removed_strikes_no_more_and_stays_counted() -> None:
    faults = ActiveFaults()
    number = faults.add(Fault(DISCONNECT, ProduceRequest))
    assert strikes(faults)

    faults.remove(number)

    assert not strikes(faults)
    assert faults.count(number) == 1


def test_the_first_of_several_strikes_until_it_is_used_up() -> None:
    faults = ActiveFaults()
    first = faults.add(Fault(DISCONNECT, ProduceRequest, times=1))
    second = faults.add(Fault(Mischief.FAIL, None, ErrorCode.INVALID_RECORD))

    assert [strikes(faults) for _ in range(3)] == [True] * 3
    assert (faults.count(first), faults.count(second)) == (1, 2)


def test_it_strikes_what_it_is_about_alone() -> None:
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
