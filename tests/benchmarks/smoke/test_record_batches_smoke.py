"""The benchmark of record batches runs; no number is asserted."""

from __future__ import annotations

import pytest

from tests.benchmarks import record_batches


@pytest.mark.bench
def test_smoke_run_covers_every_row(capsys: pytest.CaptureFixture[str]) -> None:
    rows = record_batches.main(["--smoke"])

    assert len(rows) == 29
    assert capsys.readouterr().out.count("\n") == len(rows) + 1
