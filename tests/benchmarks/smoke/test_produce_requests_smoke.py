"""The benchmark of produce requests at a small size, so that it never rots."""

from __future__ import annotations

import pytest

from tests.benchmarks.produce_requests import loads, main

pytestmark = pytest.mark.bench


def test_produce_request_benchmark_runs() -> None:
    costs = main(["--smoke"])

    assert [cost.load for cost in costs] == loads()
    assert all(cost.microseconds_per_batch > 0 for cost in costs)
