"""The slow tests that CI leaves out: neither `make test` nor `make test-slow` runs them.

A plugin of pytest. `make test-all` runs them. Besides these, CI leaves out all seeds of a slow test
but its first (`--one-seed`), and tests of what the machine lacks (Go, Kerberos) skip themselves.
Tests on Spark that are in no file of `SPARK_IN_CI` are marked by their own conftest.
"""

from __future__ import annotations

import pytest

KILLS = "tests/interop/logs/test_kills_under_pipelining.py::test_acknowledged_records_are_as_sent"
SIMULATION = "tests/simulation/test_"
MORE_SEEDS = "`make test` runs the first; `make sim` draws as many as one likes."
STREAMS = "tests/interop/transactions/test_streams.py::test_streams_counts_each_word_once"
NEWER = "The same with 4.4.0 is run."
STEPS = "Deaths at each step of consumer groups and of transactions are run."
DEFECTS = "They test the simulation, for minutes each."

LEFT_OUT: dict[str, str] = {
    "tests/spark_jobs/": "A Spark session of minutes each: with them, CI takes over an hour.",
    "tests/benchmarks/smoke/test_pipeline_smoke.py": "All Spark jobs, on two makes of broker.",
    "tests/benchmarks/smoke/test_end_to_end_smoke.py": "All rows; `make test` runs some of them.",
    f"{KILLS}_after_a_hundred_kills": "The same test with three kills is run.",
    "tests/interop/clusters/test_secured_mixed_cluster.py": "test_mixed_cluster makes these moves.",
    "tests/interop/security/test_like_apache.py::test_access_with_zookeeper": "Apache 4's is run.",
    "tests/interop/coordinators/kills/test_share_steps.py": STEPS,
    "tests/interop/streams/test_streams_kills.py": STEPS,
    f"{STREAMS}[classic-streams-4.3.1]": NEWER,
    f"{STREAMS}[streams-streams-4.3.1]": NEWER,
    f"{SIMULATION}simulation.py::test_a_planted_defect": DEFECTS,
    f"{SIMULATION}groups.py::test_a_planted_defect": DEFECTS,
    f"{SIMULATION}transactions.py::test_a_planted_defect": DEFECTS,
    f"{SIMULATION}simulation.py::test_seeds_keep_every_promise": MORE_SEEDS,
    f"{SIMULATION}simulation.py::test_delayed_records_arrive_once_and_never_early": MORE_SEEDS,
    f"{SIMULATION}groups.py::test_groups_keep_every_promise": MORE_SEEDS,
    f"{SIMULATION}transactions.py::test_transactions_keep_every_promise": MORE_SEEDS,
}
"""Reasons, by how the ids of the tests begin; the tests are marked `manual`."""


@pytest.hookimpl(tryfirst=True)  # before what is deselected by its marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow ones among them."""
    for item in items:
        if item.get_closest_marker("slow") and item.nodeid.startswith(tuple(LEFT_OUT)):
            item.add_marker(pytest.mark.manual)
