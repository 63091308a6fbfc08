"""The benchmark of authorisation runs; no number is asserted."""

from __future__ import annotations

import pytest

from tests.benchmarks import authorization


@pytest.mark.bench
def test_smoke_run_covers_every_row(capsys: pytest.CaptureFixture[str]) -> None:
    rows = authorization.main(["--smoke"])

    assert len(rows) == 6
    assert capsys.readouterr().out.count("\n") == len(rows) + 1
