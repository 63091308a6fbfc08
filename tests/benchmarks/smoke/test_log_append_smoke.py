"""The append benchmark at a small size, so that it never rots; its numbers are not judged here."""

from __future__ import annotations

import pytest

from tests.benchmarks.log_append import run

pytestmark = pytest.mark.bench


def test_append_benchmark_runs() -> None:
    costs = run(count=5, partitions=3)

    assert [cost.name.split()[0] for cost in costs] == ["10", "100", "1000", "100"]
    assert all(cost.append > 0 and cost.read_tail > 0 for cost in costs)
