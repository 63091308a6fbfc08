"""Pushed metrics: MetricsData of OpenTelemetry's protocol, read by its own library.

Clients of KIP-714 push gauges and sums; histograms and summaries are left out. Names and values are
truncated, and data points beyond the limit of a push are counted only. Runs on a thread: a push of
a megabyte takes some tens of milliseconds.
"""

from __future__ import annotations

import re
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from protocol.errors import ApiError, ErrorCode
from protocol.records.compression import Codec, decompress

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LONGEST: Final = 200
"""Characters of a name or a value. Fixed: no metric's name is half as long."""
MOST_LABELS: Final = 20
"""Of one number. Fixed: clients of KIP-714 push five at most."""
ELEMENTS_PER_POINT: Final = 10
"""Resources, scopes, metrics and points per accepted data point: a megabyte can have 500,000 empty
ones. Fixed: real pushes have one or two.
"""
DELTA: Final = 1
"""Temporality of a sum of which only the change is pushed."""
ORIGIN: Final = "org.apache.kafka."
PREFIX: Final = "kafka_client_"
"""Prefix of all names, so that clients cannot pose as the broker."""

Labels = tuple[tuple[str, str], ...]

_UNFIT = re.compile(r"[^a-zA-Z0-9_]")


class Point(NamedTuple):
    """One number."""

    name: str
    """As Prometheus spells it."""
    labels: Labels
    value: float
    is_delta: bool
    """True if it is added to the value pushed before."""


SKIPPED: Final = Point("", (), 0.0, is_delta=False)
"""Counts as an element, and is none of the points."""


class Pushed(NamedTuple):
    """Contents of a push."""

    points: list[Point]
    left_out: int
    """Data points that were not taken."""


def read(codec: int, data: bytes, most_bytes: int, most_points: int) -> Pushed:
    """Decompress and decode. Raises ApiError INVALID_RECORD."""
    from google.protobuf.message import DecodeError  # noqa: PLC0415  (20 ms, once, if ever)
    from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData  # noqa: PLC0415

    try:
        content = bytes(decompress(Codec(codec), data, most_bytes))
        metrics = MetricsData.FromString(content)
    except (ApiError, DecodeError) as error:
        raise ApiError(ErrorCode.INVALID_RECORD, f"telemetry cannot be read: {error}") from None
    points: list[Point] = []
    left_out = 0
    most_elements = most_points * ELEMENTS_PER_POINT
    for seen, point in enumerate(_points(metrics)):
        if seen >= most_elements:
            raise ApiError(ErrorCode.INVALID_RECORD, f"more than {most_elements} elements")
        if point is SKIPPED:
            continue
        if point is None or len(points) >= most_points:
            left_out += 1
        else:
            points.append(point)
    return Pushed(points, left_out)


def _points(data: Any) -> Iterator[Point | None]:  # noqa: ANN401  (made at import)
    """Each data point, None for an unusable one, and SKIPPED for the elements around them."""
    for resource in data.resource_metrics:
        yield SKIPPED
        for scope in resource.scope_metrics:
            yield SKIPPED
            for metric in scope.metrics:
                yield SKIPPED
                yield from _of_metric(metric, resource.resource.attributes)


def _of_metric(metric: Any, attributes: Iterable[Any]) -> Iterator[Point | None]:  # noqa: ANN401
    kind = metric.WhichOneof("data")
    if kind not in {"gauge", "sum"}:
        yield None
        return
    numbers = getattr(metric, kind)
    is_delta = kind == "sum" and numbers.aggregation_temporality == DELTA
    name = prometheus_name(metric.name)
    for point in numbers.data_points:
        value = point.WhichOneof("value")
        if value is None:
            yield None
        else:
            labels = _labels(chain(point.attributes, attributes))
            yield Point(name, labels, float(getattr(point, value)), is_delta)


def prometheus_name(name: str) -> str:
    """`org.apache.kafka.producer.record.error.total` as `kafka_client_producer_record_…`."""
    return PREFIX + _UNFIT.sub("_", name.removeprefix(ORIGIN)[:LONGEST])


def _labels(attributes: Iterable[Any]) -> Labels:
    found: dict[str, str] = {}
    for attribute in islice(attributes, MOST_LABELS):
        kind = attribute.value.WhichOneof("value")
        if kind in {"string_value", "int_value", "double_value", "bool_value"}:
            name = "attribute_" + _UNFIT.sub("_", attribute.key[:LONGEST])
            found.setdefault(name, str(getattr(attribute.value, kind))[:LONGEST])
    return tuple(sorted(found.items()))
