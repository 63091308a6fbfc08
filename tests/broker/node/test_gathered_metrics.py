"""Pages of several brokers become one, which Prometheus reads."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

from broker.metrics.status_socket import METRICS
from broker.node import gathered_metrics
from broker.node.gathered_metrics import GatheredMetrics, merged
from broker.node.member import Member
from broker.node.plan import MemberPlan
from config.broker import BrokerConfig

if TYPE_CHECKING:
    import pytest

SECONDS = 60.0

FIRST = b"""\
# HELP requests_total Requests
# TYPE requests_total counter
requests_total{request="Produce",error="a b {c} \\" d"} 3.0
requests_total{request="Fetch"} 4.0
# HELP up Up
# TYPE up gauge
up 1.0
"""
SECOND = b"""\
# HELP up Up
# TYPE up gauge
up 2.0
# HELP only Only of the second
# TYPE only gauge
only{} 5.0 1700000000000
# HELP requests_total Requests
# TYPE requests_total counter
requests_total{request="Fetch"} 6.0
"""


def samples(page: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


def test_each_sample_is_labelled_with_its_broker() -> None:
    found = samples(merged([("0", FIRST), ("7", SECOND)]))
    assert found == {
        ("requests_total", (("broker", "0"), ("error", 'a b {c} " d'), ("request", "Produce"))): 3,
        ("requests_total", (("broker", "0"), ("request", "Fetch"))): 4,
        ("requests_total", (("broker", "7"), ("request", "Fetch"))): 6,
        ("up", (("broker", "0"),)): 1,
        ("up", (("broker", "7"),)): 2,
        ("only", (("broker", "7"),)): 5,
    }


def test_a_metric_stands_in_one_place_with_its_words_once() -> None:
    page = merged([("0", FIRST), ("7", SECOND)])
    assert [line for line in page.splitlines() if line.startswith("# HELP")] == [
        "# HELP requests_total Requests",
        "# HELP up Up",
        "# HELP only Only of the second",
    ]
    assert page.index('up{broker="7"}') < page.index("# HELP only")


def test_brokers_without_metrics_are_left_out() -> None:
    assert merged([]) == ""
    assert (
        samples(merged([("0", b""), ("1", FIRST)])).keys() == samples(merged([("1", FIRST)])).keys()
    )


def members(count: int) -> list[Member]:
    async def made() -> list[Member]:
        configs = [BrokerConfig(broker_id=n, status_socket=f"{n}.sock") for n in range(count)]
        return [Member(MemberPlan(one.broker_id, one, ()), BrokerConfig()) for one in configs]

    return asyncio.run(made())


def test_however_many_hang_they_are_waited_for_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each answers only once all are asked; one by one they would keep the scraper waiting."""
    count = 30
    all_are_asked = threading.Barrier(count)

    def answer(path: str, page: str, seconds: float) -> bytes:
        all_are_asked.wait(SECONDS)
        return FIRST if page == METRICS else b""

    monkeypatch.setattr(gathered_metrics, "ask", answer)

    page = GatheredMetrics(members(count)).page(METRICS).decode()

    assert page.count("\nup{broker=") == count
