"""The formats that a table may have, for options: without Spark."""

from __future__ import annotations

from enum import StrEnum


class TableFormat(StrEnum):
    """The formats there are."""

    DELTA = "delta"
    ICEBERG = "iceberg"
