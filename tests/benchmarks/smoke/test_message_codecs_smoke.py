"""The benchmark of messages runs; no number is asserted."""

from __future__ import annotations

import pytest

from tests.benchmarks import message_codecs


@pytest.mark.bench
def test_smoke_run_covers_every_row(capsys: pytest.CaptureFixture[str]) -> None:
    rows = message_codecs.main(["--smoke"])

    assert len(rows) == 32
    assert capsys.readouterr().out.count("\n") == len(rows) + 1
