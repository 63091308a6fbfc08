"""Windows of a month: each one as pandas makes it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from spark_jobs.produce_flights import ProduceOptions, produce
from spark_jobs.streams import run_to_end
from spark_jobs.tally import tally_windows
from spark_jobs.window_delays import NAME, WindowOptions, start
from tests.spark_jobs.conftest import TOPIC
from tests.spark_jobs.consuming import read_topic
from tests.spark_jobs.month import FEED, MONTH, month_of_flights

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from spark_jobs.produce_flights import Outcome


@pytest.fixture(scope="module")
def windowed(
    servers: str, spark: SparkSession, produced: Outcome, tmp_path_factory: pytest.TempPathFactory
) -> WindowOptions:
    """Put the month into windows once; return the options it ran with."""
    options = WindowOptions(
        bootstrap_servers=servers,
        topic=TOPIC,
        windows_topic="march.windows",
        once=True,
        checkpoint=tmp_path_factory.mktemp("checkpoint"),
    )
    assert run_to_end([start(spark, options)]) == {NAME: produced.lines}
    return options


def _windows(servers: str, topic: str) -> dict[str, dict[str, Any]]:
    """Return the last version of each window by its key."""
    records = sorted(read_topic(servers, topic))
    return {(r.key or b"").decode(): json.loads(r.value or b"") for r in records}


def test_every_window_is_as_pandas_makes_it(
    servers: str, windowed: WindowOptions, spark: SparkSession
) -> None:
    assert spark is not None
    flights = month_of_flights()
    expected = {}
    for (origin, hour), group in flights.groupby(["origin", "time_hour"]):
        expected[f"{origin} {hour}"] = {
            "flights": len(group),
            "cancelled": int((group.route == "cancelled").sum()),
            "delayed": int((group.route == "delayed").sum()),
            "without_arrival": int((group.dep_time.notna() & group.arr_delay.isna()).sum()),
            "dep_delay_count": int(group.dep_delay.count()),
            "dep_delay_sum": int(group.dep_delay.sum()) if group.dep_delay.count() else None,
            "arr_delay_count": int(group.arr_delay.count()),
            "arr_delay_sum": int(group.arr_delay.sum()) if group.arr_delay.count() else None,
            "arr_delay_max": int(group.arr_delay.max()) if group.arr_delay.count() else None,
        }
    names = next(iter(expected.values()))
    found = {
        key: {name: window[name] for name in names}
        for key, window in _windows(servers, windowed.windows_topic).items()
    }
    assert found == expected


def test_the_tally_groups_windows_by_local_hour(
    spark: SparkSession, windowed: WindowOptions
) -> None:
    flights = month_of_flights()
    tally = tally_windows(spark, windowed)
    assert tally.flights == len(flights)
    assert tally.windows == flights.groupby(["origin", "time_hour"]).ngroups
    expected = {
        key: (len(group), int(group.dep_delay.sum()))
        for key, group in flights.groupby(["origin", "month", "hour"])
    }
    found = {(h.origin, h.month, h.hour): (h.flights, h.dep_delay_sum) for h in tally.hours}
    assert found == expected


def test_running_again_changes_nothing(
    servers: str, spark: SparkSession, windowed: WindowOptions
) -> None:
    before = len(read_topic(servers, windowed.windows_topic))
    assert run_to_end([start(spark, windowed)]) == {NAME: 0}
    assert len(read_topic(servers, windowed.windows_topic)) == before


def test_a_flight_behind_the_watermark_is_left_out_and_changes_no_window(
    servers: str,
    spark: SparkSession,
    tmp_path: Path,
    new_name: Callable[[str], str],
) -> None:
    topic = new_name("late")
    produce(ProduceOptions(bootstrap_servers=servers, topic=topic, months=(MONTH,), damaged=0))
    options = WindowOptions(
        bootstrap_servers=servers,
        topic=topic,
        windows_topic=f"{topic}.windows",
        once=True,
        checkpoint=tmp_path,
    )
    run_to_end([start(spark, options)])
    before = tally_windows(spark, options)
    _produce_again_the_first_line_of(servers, topic)
    assert run_to_end([start(spark, options)]) == {NAME: 1}
    after = tally_windows(spark, options)
    assert (after.windows, after.flights) == (before.windows, before.flights)
    assert before.flights == len(month_of_flights())


def _produce_again_the_first_line_of(servers: str, topic: str) -> None:
    first = next(FEED.lines(FEED.flights()))
    producer = Producer({"bootstrap.servers": servers})
    producer.produce(topic, key=first.key, value=first.value, timestamp=first.timestamp_ms)
    assert producer.flush(30) == 0
