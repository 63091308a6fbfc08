"""The same quotas and requests to Apache Kafka and to our broker: the same answers, the same rests.

How long a client has to rest follows from what it sent, to the millisecond, as long as nothing was
counted before; so the numbers are compared, not only that there are any.
"""

from __future__ import annotations

import socket
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import pytest

from protocol.errors import ErrorCode
from protocol.headers import request_front, response_header_bytes
from protocol.messages.client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
)
from protocol.messages.fetch import FetchRequest
from protocol.messages.metadata import MetadataRequest
from protocol.messages.produce import ProduceRequest
from protocol.messages.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from protocol.records.builder import NewRecord, build_batch
from protocol.uuids import ZERO_UUID
from tests.interop.conftest import eventually
from tests.support.brokers.apache import apache_4
from tests.support.brokers.ours import ours
from tests.support.wire import ConnectionClosedError, RawConnection

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from protocol.schema import Request
    from tests.support.brokers.broker_process import BrokerProcess

PRODUCE, FETCH = "producer_byte_rate", "consumer_byte_rate"
REQUEST, MUTATION = "request_percentage", "controller_mutation_rate"
CONNECTIONS = "connection_creation_rate"
EXACT, OF_DEFAULT, ANY = 0, 1, 2
NEVER_REST = 1e9
WINDOW_MS = 1000
ONE_A_SECOND = 1.0
SPARE_MS = 1500
"""Tolerance between two brokers' clocks where elapsed time counts."""
TIMEOUT_SECONDS = 60

Entity = dict[str, str | None]


class Caller:
    """A client id on one connection."""

    def __init__(self, broker: BrokerProcess, client_id: str, host: str = "127.0.0.1") -> None:
        self._client_id = client_id.encode()
        here = ("127.0.0.1", broker.port)
        connected = socket.create_connection(here, TIMEOUT_SECONDS, source_address=(host, 0))
        self._connection = RawConnection(connected)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.socket.close()

    def ask(self, request: Request, version: int) -> Any:
        cls = type(request)
        body = bytes(request.encode(version))
        front = request_front(1, cls.API_KEY, version, self._client_id, len(body))
        self._connection.send(bytes(front) + body)
        answer = memoryview(self._connection.receive())
        start = response_header_bytes(cls.API_KEY, version)
        return cls.RESPONSE.decode_from(version, answer, start)[0]


def ask(broker: BrokerProcess, client_id: str, request: Request, version: int) -> Any:
    """Ask on a connection of its own, which does not have to rest."""
    with Caller(broker, client_id) as caller:
        return caller.ask(request, version)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[BrokerProcess]]:
    """Return Apache Kafka 4 and our broker, running."""
    brokers = [apache_4(tmp_path_factory.mktemp("apache")), ours(tmp_path_factory.mktemp("ours"))]
    try:
        for broker in brokers:
            broker.start()
        yield brokers
        for broker in brokers:
            broker.stop()
    finally:
        for broker in brokers:
            broker.kill()


def alteration(
    *changes: tuple[Mapping[str, str | None], str, float | None],
) -> AlterClientQuotasRequest:
    """Make an alteration with one entry for each."""
    kind = AlterClientQuotasRequest.Entry
    return AlterClientQuotasRequest(
        entries=[
            kind(
                entity=[kind.Entity(entity_type=k, entity_name=n) for k, n in entity.items()],
                ops=[kind.Op(key=key, value=value or 0.0, remove=value is None)],
            )
            for entity, key, value in changes
        ],
        validate_only=False,
    )


def question(*components: tuple[str, int, str | None], strict: bool = False) -> Request:
    kind = DescribeClientQuotasRequest.Component
    return DescribeClientQuotasRequest(
        components=[kind(entity_type=k, match_type=how, match=n) for k, how, n in components],
        strict=strict,
    )


def shown(response: Any) -> Any:
    """An answer without the words of its errors, in an order of its own."""
    if isinstance(response, AlterClientQuotasResponse):
        return [(named(entry.entity), entry.error_code) for entry in response.entries]
    entries = [
        (named(entry.entity), sorted((value.key, value.value) for value in entry.values))
        for entry in response.entries or ()
    ]
    return response.error_code, sorted(entries)


def named(entity: Sequence[Any]) -> list[tuple[str, str]]:
    return sorted((part.entity_type, part.entity_name or "<default>") for part in entity)


def limit(broker: BrokerProcess, entity: Entity, key: str, value: float | None) -> None:
    """Set a quota, and wait until it is known."""
    (entry,) = ask(broker, "admin", alteration((entity, key, value)), 1).entries
    assert entry.error_code == ErrorCode.NONE, entry.error_message
    exact = [(kind, EXACT if name else OF_DEFAULT, name) for kind, name in entity.items()]
    expected = [value] if value is not None else []

    def holds() -> bool:
        found = ask(broker, "admin", question(*exact), 1).entries
        return [v.value for e in found for v in e.values if v.key == key] == expected

    eventually(holds)


USER: Entity = {"user": "alice"}
USERS_CLIENT: Entity = {"user": "al ice/*", "client-id": "x~y"}
ASKED: list[Request] = [
    alteration((USER, PRODUCE, 1024.0), (USERS_CLIENT, FETCH, 2.0)),
    alteration(({"user": None}, REQUEST, 50.5), ({"client-id": None}, MUTATION, 1.5)),
    alteration(({"user": None, "client-id": None}, FETCH, 1e9)),
    alteration(({"ip": "10.1.2.3"}, CONNECTIONS, 9.0), ({"ip": None}, CONNECTIONS, 1e6)),
    *[
        alteration((entity, key, value))
        for entity, key, value in (
            (USER, PRODUCE, 0.0),
            (USER, PRODUCE, -1.0),
            (USER, PRODUCE, 1.5),
            (USER, PRODUCE, 1e19),
            (USER, CONNECTIONS, 1.0),
            (USER, "nonsense", 1.0),
            (USER, "nonsense", None),
            (USER, "SCRAM-SHA-256", 1.0),
            ({"user": ""}, PRODUCE, 1.0),
            ({}, PRODUCE, 1.0),
            ({"group": "g"}, PRODUCE, 1.0),
            ({"user": "u", "ip": "1.2.3.4"}, CONNECTIONS, 1.0),
            ({"ip": "1.2.3.4"}, PRODUCE, 1.0),
            ({"ip": "1.2.3.4"}, CONNECTIONS, 1.5),
            ({"ip": "1.2.3.4"}, CONNECTIONS, 3e9),
            ({"user": "endless"}, REQUEST, float("inf")),
            ({"user": "endless"}, REQUEST, float("nan")),
        )
    ],
    alteration((USER, FETCH, 1.0), (USER, FETCH, 2.0)),
    question(),
    question(strict=True),
    *[
        question((kind, how, name), strict=strict)
        for strict in (False, True)
        for kind, how, name in (
            ("user", EXACT, "alice"),
            ("user", EXACT, "al ice/*"),
            ("user", OF_DEFAULT, None),
            ("user", ANY, None),
            ("client-id", ANY, None),
            ("client-id", OF_DEFAULT, None),
            ("ip", ANY, None),
            ("ip", EXACT, "10.1.2.3"),
            ("", EXACT, "x"),
            ("group", EXACT, "x"),
            ("user", 3, None),
            ("user", EXACT, None),
            ("user", OF_DEFAULT, "x"),
            ("user", ANY, "x"),
            ("user", EXACT, ""),
        )
    ],
    question(("user", OF_DEFAULT, None), ("client-id", OF_DEFAULT, None)),
    question(("user", EXACT, "a"), ("user", ANY, None)),
    question(("user", ANY, None), ("ip", ANY, None)),
    alteration(
        *[(entity, PRODUCE, None) for entity in (USER, {"user": "nobody"})],
        (USERS_CLIENT, FETCH, None),
        ({"user": None}, REQUEST, None),
        ({"client-id": None}, MUTATION, None),
        ({"user": None, "client-id": None}, FETCH, None),
        ({"ip": None}, CONNECTIONS, None),
    ),
    question(),
]


@pytest.mark.parametrize("version", [0, 1])
def test_quotas_are_set_and_described_alike(both: list[BrokerProcess], version: int) -> None:
    with Caller(both[0], "admin") as apache, Caller(both[1], "admin") as own:
        for request in ASKED:
            ours_shown = shown(own.ask(request, version))
            if isinstance(request, AlterClientQuotasRequest):
                assert sorted(shown(apache.ask(request, version))) == sorted(ours_shown), request
            else:
                # Apache's controller has answered before its broker knows.
                eventually(partial(is_shown, apache, request, version, ours_shown))


def is_shown(caller: Caller, request: Request, version: int, expected: Any) -> bool:
    return bool(shown(caller.ask(request, version)) == expected)


def creation(name: str, count: int) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.Topic(
        name=name, num_partitions=count, replication_factor=1, assignments=[], configs=[]
    )
    return CreateTopicsRequest(topics=[topic], timeout_ms=30_000)


def topic_on(broker: BrokerProcess, name: str) -> None:
    (topic,) = ask(broker, "admin", creation(name, 1), 7).topics
    assert topic.error_code == ErrorCode.NONE

    def is_led() -> bool:
        wanted = MetadataRequest(topics=[MetadataRequest.Topic(name=name)])
        (found,) = ask(broker, "admin", wanted, 12).topics
        return [one.leader_id for one in found.partitions] == [0]

    eventually(is_led)


def production(topic: str, value: bytes) -> ProduceRequest:
    batch = bytes(build_batch([NewRecord(1_700_000_000_000, b"key", value)]))
    kind = ProduceRequest.TopicData
    data = kind.PartitionData(index=0, records=batch)
    topics = [kind(name=topic, partition_data=[data])]
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=topics)


def consumption(topic: str) -> FetchRequest:
    kind = FetchRequest.Topic
    partition = kind.Partition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[kind(topic=topic, partitions=[partition])],
        forgotten_topics_data=[],
    )


def test_throttle_times_of_producer_and_consumer_equal_apaches(both: list[BrokerProcess]) -> None:
    """The sizes of requests and answers are the same, and so are the rests."""
    rests = []
    for broker in both:
        topic_on(broker, "orders")
        limit(broker, {"client-id": "producer"}, PRODUCE, 1000)
        limit(broker, {"client-id": "consumer"}, FETCH, 1000)
        produced = ask(broker, "producer", production("orders", bytes(11_000)), 9)
        (answer,) = produced.responses[0].partition_responses
        assert answer.error_code == ErrorCode.NONE
        fetched = ask(broker, "consumer", consumption("orders"), 12)
        assert fetched.responses == []
        rests.append((produced.throttle_time_ms, fetched.throttle_time_ms))
    assert rests[0] == rests[1]
    assert 1000 < rests[0][0] < 2000
    assert rests[0][1] > 0


def test_connection_takes_no_request_while_its_client_has_to_rest(
    both: list[BrokerProcess],
) -> None:
    for broker in both:
        topic_on(broker, "rested")
        limit(broker, {"client-id": "impatient"}, PRODUCE, 1000)
        with Caller(broker, "impatient") as caller:
            began = time.monotonic()
            response = caller.ask(production("rested", bytes(11_000)), 9)
            assert time.monotonic() - began < response.throttle_time_ms / 1000, "told at once"
            caller.ask(MetadataRequest(topics=[]), 12)
            assert time.monotonic() - began >= response.throttle_time_ms / 1000


def test_request_quota_throttles_for_one_window(both: list[BrokerProcess]) -> None:
    for broker in both:
        limit(broker, {"client-id": "slow"}, REQUEST, 1e-6)
        response = ask(broker, "slow", MetadataRequest(topics=[]), 12)
        assert response.throttle_time_ms == WINDOW_MS


@pytest.mark.parametrize("is_strict", [True, False])
def test_topics_are_refused_alike(both: list[BrokerProcess], is_strict: bool) -> None:
    """A full bucket has eleven permits; what takes more is let through, and the next waits."""
    name = f"strict-{is_strict}"
    outcomes = []
    for broker in both:
        topic_on(broker, f"{name}-grown")
        limit(broker, {"client-id": name}, MUTATION, ONE_A_SECOND)
        outcomes.append(list(changes(broker, name, is_strict=is_strict)))
    for apaches, own in zip(*outcomes, strict=True):
        assert own[0] == apaches[0], outcomes
        assert own[1] == pytest.approx(apaches[1], abs=SPARE_MS), outcomes
    codes = [code for code, _ in outcomes[0]]
    expected = ErrorCode.THROTTLING_QUOTA_EXCEEDED if is_strict else ErrorCode.NONE
    assert codes == [ErrorCode.NONE, expected, expected, expected]


def changes(broker: BrokerProcess, name: str, *, is_strict: bool) -> Iterator[tuple[int, float]]:
    """Codes of requests, and until when their client has to rest, in ms since the first."""
    create, delete, grow = (7, 6, 3) if is_strict else (5, 4, 2)
    began = time.monotonic()

    def outcome(code: int, response: Any) -> tuple[int, float]:
        rest_ms = response.throttle_time_ms
        return code, rest_ms + (time.monotonic() - began) * 1000 if rest_ms else 0

    for request in (creation(f"{name}-many", 60), creation(f"{name}-more", 1)):
        response = ask(broker, name, request, create)
        yield outcome(response.topics[0].error_code, response)
    growth = CreatePartitionsRequest.Topic(name=f"{name}-grown", count=2, assignments=None)
    request_ = CreatePartitionsRequest(topics=[growth], timeout_ms=30_000, validate_only=False)
    response = ask(broker, name, request_, grow)
    yield outcome(response.results[0].error_code, response)
    topic = f"{name}-grown"
    named_: dict[str, Any] = (
        {"topics": [DeleteTopicsRequest.Topic(name=topic, topic_id=ZERO_UUID)]}
        if is_strict
        else {"topic_names": [topic]}
    )
    response = ask(broker, name, DeleteTopicsRequest(timeout_ms=30_000, **named_), delete)
    yield outcome(response.responses[0].error_code, response)


def test_as_many_connections_of_an_address_are_served(both: list[BrokerProcess]) -> None:
    served = []
    for broker in both:
        limit(broker, {"ip": "127.0.0.2"}, CONNECTIONS, ONE_A_SECOND)
        served.append(sum(is_served(broker, "127.0.0.2") for _ in range(13)))
        assert is_served(broker, "127.0.0.3")
        limit(broker, {"ip": "127.0.0.2"}, CONNECTIONS, None)
    assert 10 <= min(served) <= max(served) <= 12, f"one a second, and ten at once: {served}"


def is_served(broker: BrokerProcess, host: str) -> bool:
    try:
        with Caller(broker, "anyone", host) as caller:
            caller.ask(MetadataRequest(topics=[]), 12)
    except (ConnectionClosedError, ConnectionError):
        return False
    return True
