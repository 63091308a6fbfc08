"""The benchmark of embedded brokers runs; no number is asserted."""

from __future__ import annotations

import pytest

from tests.benchmarks.embedded import starts


@pytest.mark.bench
def test_smoke_run_covers_every_row(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # which it takes away, and is put back
    starts.main(["--smoke"])

    assert capsys.readouterr().out.count("\n") == 12
