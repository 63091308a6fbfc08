"""The benchmark of indexes by key at a small size; its numbers are not judged here."""

from __future__ import annotations

import pytest

from tests.benchmarks.logs.key_index import main

pytestmark = pytest.mark.bench


def test_key_index_benchmark_runs() -> None:
    figures = main(["--smoke"])

    assert 0 < figures.index_bytes < 0.05 * figures.log_bytes
    assert figures.build_cpu_seconds > 0
    assert len(figures.hits_ms) == len(figures.misses_ms) == 5
