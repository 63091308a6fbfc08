"""The benchmark of share groups runs, and all records are consumed; no number is asserted."""

from __future__ import annotations

import pytest

from tests.benchmarks.groups import share_consumers
from tests.benchmarks.measurement.contestants import OURS


@pytest.mark.slow
@pytest.mark.bench
@pytest.mark.java
@pytest.mark.process
def test_smoke_run_covers_every_row() -> None:
    rows = share_consumers.main(["--smoke"])

    assert [len(row.results[OURS]) for row in rows] == [1] * 6
