"""The benchmark of TLS handshakes runs; no number is asserted."""

from __future__ import annotations

import pytest

from tests.benchmarks import handshakes
from tests.benchmarks.measurement.contestants import OURS


@pytest.mark.bench
@pytest.mark.process
def test_smoke_run_covers_every_row(capsys: pytest.CaptureFixture[str]) -> None:
    rows = handshakes.main(["--smoke"])

    assert all(len(row.results[OURS]) == 1 for row in rows.reports)
    assert capsys.readouterr().out.count("\n") == len(rows.reports) + 1
