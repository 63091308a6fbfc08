"""The benchmark of compaction runs, tiny, on our broker. No number is asserted."""

from __future__ import annotations

import pytest

from tests.benchmarks import compaction


@pytest.mark.bench
@pytest.mark.timeout(180)
def test_smoke_run_measures_every_row_of_compaction() -> None:
    reports = compaction.main(["--smoke", "--only", "ours"])

    assert all(row.cells()[2] != "-" for row in reports)
