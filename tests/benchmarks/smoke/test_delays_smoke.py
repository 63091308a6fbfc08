"""The benchmark of delays runs, and all that it sends is delivered."""

from __future__ import annotations

import pytest

from tests.benchmarks.messaging import delays


@pytest.mark.bench
def test_delays_are_measured() -> None:
    rows = {row.name: row.value for row in delays.main(["--smoke"])}

    assert rows["delivered"] == "2,000 of 2,000"
    assert rows["records that wait"] == "2,000"
