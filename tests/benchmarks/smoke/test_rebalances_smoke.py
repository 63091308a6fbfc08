"""The benchmark of groups runs, and its members get all partitions; no number is asserted."""

from __future__ import annotations

import pytest

from tests.benchmarks.groups import rebalances
from tests.benchmarks.measurement.contestants import OURS


@pytest.mark.bench
@pytest.mark.process
def test_smoke_run_covers_every_row() -> None:
    rows = rebalances.main(["--smoke"])

    assert [len(row.results[OURS]) for row in rows] == [1, 1, 1, 1, 1, 1, 1]
