"""The slow tests that CI leaves out: neither `make test` nor `make test-slow` runs them.

A plugin of pytest. `make test-all` runs them. Besides these, CI leaves out all seeds of a slow test
but its first (`--one-seed`), and tests of what the machine lacks (Go, Kerberos) skip themselves.
"""

from __future__ import annotations

import pytest

LEFT_OUT: dict[str, str] = {
    "tests/spark_jobs/": "A Spark session of minutes each: with them, CI takes over an hour.",
    "tests/benchmarks/smoke/test_pipeline_smoke.py": "All Spark jobs, on two makes of broker.",
    "tests/simulation/test_simulation.py::test_a_planted": "They test the simulation, for minutes.",
    "tests/simulation/test_groups.py::test_a_planted": "As above.",
    "tests/simulation/test_transactions.py::test_a_planted": "As above.",
}
"""Reasons, by how the ids of the tests begin; the tests are marked `manual`."""


@pytest.hookimpl(tryfirst=True)  # before what is deselected by its marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow ones among them."""
    for item in items:
        if item.get_closest_marker("slow") and item.nodeid.startswith(tuple(LEFT_OUT)):
            item.add_marker(pytest.mark.manual)
