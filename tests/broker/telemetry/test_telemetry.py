"""Metrics requested from clients, the push interval, and the state kept of them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from broker.network.client import Client
from broker.telemetry import otlp
from broker.telemetry.otlp import Point
from broker.telemetry.series import Series
from broker.telemetry.subscription import parse
from broker.telemetry.subscriptions import Subscriptions
from broker.telemetry.telemetry import LONGEST_LABEL, Telemetry
from config.broker import BrokerConfig
from controller.brokers.dynamic_configs import DynamicConfigs
from protocol.errors import ApiError, ErrorCode
from protocol.messages.telemetry import (
    GetTelemetrySubscriptionsRequest,
    PushTelemetryRequest,
)
from protocol.records.compression import Codec, compress
from protocol.uuids import ZERO_UUID
from tests.controller.memory_store import MemoryEnsemble

if TYPE_CHECKING:
    from collections.abc import Mapping

NOW_MS = 1_700_000_000_000
JAVA = {"client_id": "orders", "client_software_name": "apache-kafka-java"}
ID, OTHER = UUID(int=500), UUID(int=501)
INTERVAL_MS = 10_000


def telemetry(settings: Mapping[str, Mapping[str, str]], **keys: Any) -> Telemetry:
    """Return telemetry with these subscriptions; ids are drawn from 1 on."""
    store = MemoryEnsemble().connect()
    subscriptions = Subscriptions(store, DynamicConfigs(store))

    async def keep() -> None:
        for name, one in settings.items():
            await subscriptions._changed("client-metrics", name, one)

    asyncio.run(keep())
    drawn = iter(range(1, 100))
    return Telemetry(BrokerConfig(**keys), subscriptions, lambda: UUID(int=next(drawn)))


def every(interval_ms: int = INTERVAL_MS, **more: str) -> dict[str, str]:
    return {"metrics": "*", "interval.ms": str(interval_ms), **more}


def get(one: Telemetry, now_ms: int = NOW_MS, instance: UUID = ZERO_UUID, **how: Any) -> Any:
    request = GetTelemetrySubscriptionsRequest(client_instance_id=instance)
    return one.get(request, how.get("client"), how.get("attributes", JAVA), now_ms)


def push(
    one: Telemetry, subscription_id: int, now_ms: int, instance: UUID = ID, **fields: Any
) -> ErrorCode:
    request = PushTelemetryRequest(
        **{
            "client_instance_id": instance,
            "subscription_id": subscription_id,
            "terminating": False,
            "compression_type": 0,
            "metrics": b"",
            **fields,
        }
    )
    try:
        one.check_push(request, None, JAVA, now_ms)
    except ApiError as error:
        return error.code
    return ErrorCode.NONE


def throttled(one: Telemetry, now_ms: int, instance: UUID = ID) -> bool:
    before = one.throttled
    with suppress(ApiError):
        get(one, now_ms, instance)
    return one.throttled > before


def test_requested_metrics_are_the_union_of_matching_subscriptions() -> None:
    one = telemetry(
        {
            "all": {"metrics": "b,a", "interval.ms": "60000"},
            "java": {"metrics": "c", "match": "client_software_name=apache.*, client_id=or.*"},
            "else": {"metrics": "d", "interval.ms": "100", "match": "client_id=rder"},
            "port": {"metrics": "e", "match": "client_source_port=.*"},
        }
    )

    answer = get(one)

    assert answer.requested_metrics == ["a", "b", "c"]
    assert answer.push_interval_ms == 60_000
    assert answer.client_instance_id == UUID(int=2), "1 is reserved"
    assert answer.telemetry_max_bytes == 1 << 20
    assert answer.accepted_compression_types == [4, 3, 1, 2]
    assert get(telemetry({})).requested_metrics == []
    assert get(telemetry({"one": every(), "two": {"metrics": "x"}})).requested_metrics == ["*"]


def test_subscription_id_is_the_same_at_each_broker_and_another_for_other_metrics() -> None:
    here, there = telemetry({"one": every()}), telemetry({"one": every()})
    other = telemetry({"one": every(20_000)})

    ids = [get(one, instance=ID).subscription_id for one in (here, there, other)]

    assert ids[0] == ids[1] != ids[2]


def test_requests_are_throttled_as_by_apache() -> None:
    one = telemetry({"one": every()})
    subscription = get(one, instance=ID).subscription_id

    assert throttled(one, NOW_MS + INTERVAL_MS - 1)
    assert push(one, subscription, NOW_MS + 1) == ErrorCode.NONE, "once after it has asked"
    assert push(one, subscription, NOW_MS + 2) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert push(one, subscription, NOW_MS + 1 + INTERVAL_MS) == ErrorCode.NONE
    assert throttled(one, NOW_MS + 2 + INTERVAL_MS)
    assert not throttled(one, NOW_MS + 1 + 2 * INTERVAL_MS)
    assert one.throttled == 3


def test_client_that_has_to_ask_again_may_do_so_at_once() -> None:
    one = telemetry({"one": every()})
    subscription = get(one, instance=ID).subscription_id

    assert push(one, subscription + 1, NOW_MS + 1) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert not throttled(one, NOW_MS + 2)
    asyncio.run(one.subscriptions._changed("client-metrics", "one", {"metrics": "y"}))
    assert push(one, subscription, NOW_MS + 3) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert get(one, NOW_MS + 4, ID).requested_metrics == ["y"]
    assert one.unknown_subscriptions == 2


def test_last_push_may_come_early_and_nothing_after_it() -> None:
    one = telemetry({"one": every()})
    subscription = get(one, instance=ID).subscription_id

    assert push(one, subscription, NOW_MS + 1) == ErrorCode.NONE
    assert push(one, subscription, NOW_MS + 2, terminating=True) == ErrorCode.NONE
    late = push(one, subscription, NOW_MS + 20_000, terminating=True)
    assert late == ErrorCode.INVALID_REQUEST


def test_an_invalid_push_is_refused() -> None:
    one = telemetry({"one": every()}, telemetry_max_bytes=10)
    subscription = get(one, instance=ID).subscription_id

    assert push(one, 0, NOW_MS, ZERO_UUID) == ErrorCode.INVALID_REQUEST
    assert push(one, 0, NOW_MS, UUID(int=1)) == ErrorCode.INVALID_REQUEST
    codec = push(one, subscription, NOW_MS + 1, compression_type=5)
    assert codec == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    large = push(one, subscription, NOW_MS + 1 + INTERVAL_MS, metrics=bytes(11))
    assert large == ErrorCode.TELEMETRY_TOO_LARGE


def test_instances_are_bounded_expire_and_end_with_their_connection() -> None:
    one = telemetry({"one": every()}, client_telemetry_max_instances=10)
    for number in range(100, 200):
        get(one, instance=UUID(int=number))
    assert len(one.instances) == 10
    get(one, NOW_MS + 60_001, ID)
    assert len(one.instances) == 1, "the others were silent for too long"

    client = Client("PLAINTEXT", {})
    for number in range(300, 305):
        get(one, NOW_MS + 60_001, UUID(int=number), client=client)
    assert len(client._leaving) == 1, "however often it asks"
    client.disconnected(None)  # type: ignore[arg-type]
    assert UUID(int=304) not in one.instances


def metrics(*named: tuple[str, str, float], temporality: int = 2) -> bytes:
    """Return a client's push: kind, name and value."""
    data = MetricsData()
    resource = data.resource_metrics.add()
    resource.resource.attributes.add(key="zone").value.string_value = "here"
    for kind, name, value in named:
        metric = resource.scope_metrics.add().metrics.add(name=name)
        numbers: Any = getattr(metric, kind)
        if kind == "sum":
            numbers.aggregation_temporality = temporality
        point = numbers.data_points.add()
        if kind != "histogram":
            point.as_double = value
            point.attributes.add(key="node.id").value.int_value = 4
    content: bytes = data.SerializeToString()
    return content


@pytest.mark.parametrize("codec", list(Codec))
def test_pushes_of_every_codec_are_read(codec: Codec) -> None:
    content = metrics(
        ("gauge", "org.apache.kafka.producer.queue.time.avg", 1.5),
        ("sum", "librdkafka-bytes", 7),
        ("histogram", "left.out", 1),
    )

    pushed = otlp.read(codec, compress(codec, content), 1 << 20, 2000)

    labels = (("attribute_node_id", "4"), ("attribute_zone", "here"))
    assert pushed.points == [
        Point("kafka_client_producer_queue_time_avg", labels, 1.5, is_delta=False),
        Point("kafka_client_librdkafka_bytes", labels, 7.0, is_delta=False),
    ]
    assert pushed.left_out == 1


@pytest.mark.parametrize(
    ("codec", "data"),
    [
        (0, b"\xff\xff\xff"),
        (1, b"no gzip"),
        (4, compress(Codec.ZSTD, bytes(1 << 20))),
        (0, bytes([10]) * 1000),
        (0, bytes([10, 0]) * 30_000),
        (0, b"\x0a\x80\x04" + b"\x12" * 512),
    ],
)
def test_push_that_cannot_be_read_is_an_invalid_record(codec: int, data: bytes) -> None:
    with pytest.raises(ApiError) as raised:
        otlp.read(codec, data, 1 << 16, 2000)
    assert raised.value.code == ErrorCode.INVALID_RECORD


def test_hostile_names_are_cut_and_cannot_pose_as_the_brokers() -> None:
    names = ["kafka_server_up", 'a"} 1\nb', "x" * 10_000, ""]
    pushed = otlp.read(0, metrics(*(("gauge", name, 1.0) for name in names)), 1 << 20, 2000)

    for point in pushed.points:
        assert point.name.startswith("kafka_client_")
        assert point.name.isascii()
        assert point.name.replace("_", "").isalnum()
        assert len(point.name) <= 220


def test_numbers_beyond_the_limit_are_left_out_and_counted() -> None:
    many = metrics(*(("gauge", f"n{number}", 1.0) for number in range(105)))
    pushed = otlp.read(0, many, 1 << 20, 100)
    assert (len(pushed.points), pushed.left_out) == (100, 5)


def point(name: str, value: float, *, is_delta: bool = False) -> Point:
    return Point(name, (), value, is_delta)


def test_deltas_add_up_and_other_numbers_replace_each_other() -> None:
    series = Series(10)
    for value in (3.0, 4.0):
        points = [point("sum", value, is_delta=True), point("gauge", value)]
        series.take(ID, {"client_id": "a"}, points, NOW_MS)

    told = {one.name: (one.value, one.labels) for one in series.samples()}
    assert told == {"sum": (7.0, {"client_id": "a"}), "gauge": (4.0, {"client_id": "a"})}


def test_series_are_bounded_and_go_with_their_client() -> None:
    series = Series(3)
    series.take(ID, {}, [point(name, 1) for name in "abcde"], NOW_MS)
    series.take(OTHER, {}, [point("f", 1)], NOW_MS + 5)
    assert (len(series), series.left_out) == (3, 3)

    series.expire(NOW_MS + 1)

    assert len(series) == 0
    series.take(OTHER, {}, [point("f", 1)], NOW_MS + 5)
    assert [one.name for one in series.samples()] == ["f"]


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"metric": "x"}, ErrorCode.INVALID_REQUEST),
        ({"interval.ms": "99"}, ErrorCode.INVALID_REQUEST),
        ({"interval.ms": "3600001"}, ErrorCode.INVALID_REQUEST),
        ({"match": "client_id"}, ErrorCode.INVALID_CONFIG),
        ({"match": "client_id=(("}, ErrorCode.INVALID_CONFIG),
        ({"match": "client_id=a=b"}, ErrorCode.INVALID_CONFIG),
        ({"match": "colour=red"}, ErrorCode.INVALID_CONFIG),
        ({"match": "client_id=" + "(a{1000}){1000}"}, ErrorCode.INVALID_CONFIG),
    ],
)
def test_an_invalid_subscription_is_refused(settings: dict[str, str], code: ErrorCode) -> None:
    with pytest.raises(ApiError) as raised:
        parse(settings)
    assert raised.value.code == code


def test_long_client_ids_are_truncated_in_labels() -> None:
    one = telemetry({"all": every()})
    get(one, instance=ID, attributes={"client_id": "x" * 32_000})
    (instance,) = one.instances._by_id.values()
    assert len(instance.attributes["client_id"]) == LONGEST_LABEL
