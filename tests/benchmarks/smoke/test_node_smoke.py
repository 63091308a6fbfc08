"""The benchmark of several brokers on one machine at a small size; its numbers are not judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.benchmarks.node import SMOKE, run, show

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.bench, pytest.mark.java]


def test_node_benchmark_runs(tmp_path: Path) -> None:
    found = run(SMOKE, tmp_path)

    assert [one.brokers for one in found] == [1, 2]
    assert all(one.megabytes_per_second > 0 for one in found)
    assert show(found, SMOKE).row_count == 2
