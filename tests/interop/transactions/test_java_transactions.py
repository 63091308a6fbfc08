"""Transactions of kafka-clients, through one Java program for all versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.interop.clients.java import each_version, run_scenarios
from tests.support import jars

if TYPE_CHECKING:
    from collections.abc import Callable

    Results = dict[str, str]

UNDONE = "undone-0, undone-1, undone-2"
FENCED = "ProducerFencedException"
OLD_EPOCH = "InvalidProducerEpochException"
EXPECTED = {
    "commit": "[0/5, 6/6, 6/6, 10]",
    "abort": f"[7/7, [done-0, done-1], [{UNDONE}, done-0, done-1]]",
    "held": "[[before-0], 4/4, [before-0, after-0]]",
    "empty": "[2/2, [full-0]]",
    "many": "[318, true, 480]",
    "fencing": f"[{FENCED}, 4/4, [heir-0]]",
    "takeover": f"[{FENCED}, {FENCED}, [first-0]]",
    "timeout": f"[0/1, 2/2, {FENCED}, [heir-0]]",
    "limits": "KafkaException",
    "offsets": "[true, 4, 80]",
    "pending": "[TimeoutException, 3, 3, 7]",
    "generation": "[CommitFailedException, 2]",
    "fenced-by-admin": f"[{FENCED}, 2/2, []]",
}
"""Output of each scenario against Apache Kafka; `Transactions.java` explains the values."""

OTHERWISE = {
    (jars.CLIENTS_2, "fenced-by-admin"): "not there",
    **{
        (version, scenario): printed
        for version in (jars.KAFKA_4_3, jars.KAFKA_4)
        for scenario, printed in (
            ("takeover", f"[{OLD_EPOCH}, {OLD_EPOCH}, [first-0]]"),
            ("timeout", "[0/1, 2/2, InvalidTxnStateException, [heir-0]]"),
        )
    },
}
"""Differences by version: from 4.0 on, with transactions of version 2 (KIP-890), a client does not
ask the coordinator before it sends, and each transaction has an epoch of its own."""


@pytest.fixture(scope="session")
def results_of(bootstrap: str) -> Callable[[str], Results]:
    """Return the printed lines of all scenarios for a version; each version runs once."""
    known: dict[str, Results] = {}

    def run(version: str) -> Results:
        if version not in known:
            known[version] = run_scenarios(version, "Transactions", bootstrap, list(EXPECTED))
        return known[version]

    return run


@pytest.mark.parametrize("scenario", EXPECTED)
@each_version
def test_java_transaction_scenarios_print_the_same_as_with_apache(
    results_of: Callable[[str], Results], version: str, scenario: str
) -> None:
    wanted = OTHERWISE.get((version, scenario), EXPECTED[scenario])

    results = results_of(version)

    assert results.get(scenario, "never ran") == wanted, results["stderr"]
