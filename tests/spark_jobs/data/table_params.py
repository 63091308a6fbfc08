"""Formats of tables as parameters of tests; with Iceberg a test is slow."""

from __future__ import annotations

import pytest

from spark_jobs.tables.table_format import TableFormat

FORMATS = (TableFormat.DELTA, pytest.param(TableFormat.ICEBERG, marks=pytest.mark.slow))
