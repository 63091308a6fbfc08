"""kafka-clients: one Java program, compiled against each version, says the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.interop.clients.java import each_version, run_scenarios

if TYPE_CHECKING:
    from collections.abc import Callable

    Results = dict[str, str]

SHARED = "4 shared, 4 revoked on join, 4 after leave"
EXPECTED = {
    "codecs": "{0=30[good], 1=30[good], 2=30[good], 3=30[good], 4=30[good]}",
    "idempotent": "[2000, 2000]",
    "acks": "{0=[-1, -1, -1], 1=[0, 1, 2], all=[0, 1, 2]}",
    "commits": "[4, 8, 6 by hand, 6]",
    "seeks": "[7, 0, 10, 4, 4, null, 0, 10, 0]",
    "rebalance": f"[{SHARED}, {SHARED}, {SHARED}]",
    "cooperative": "4 shared, 2 revoked on join, 4 after leave",
    "topics": "[2, 0, TopicExistsException, InvalidTopicException,"
    " InvalidReplicationFactorException, InvalidPartitionsException,"
    " UnknownTopicOrPartitionException, UnknownTopicOrPartitionException]",
    "configs": "[delete,compact, DYNAMIC_TOPIC_CONFIG, 604800000, DEFAULT_CONFIG,"
    " InvalidConfigurationException, 1]",
    "groups": "[Stable, 1, java-member, range, GroupNotEmptyException, 5, true, 2, null, false]",
    "offsets": "[0, 10, 6, 3, 3, 3, true]",
}
"""Output of each scenario against Apache Kafka; `Scenarios.java` explains the values."""


@pytest.fixture(scope="session")
def results_of(bootstrap: str) -> Callable[[str], Results]:
    """Return the printed lines of all scenarios for a version; each version runs once."""
    known: dict[str, Results] = {}

    def run(version: str) -> Results:
        if version not in known:
            known[version] = run_scenarios(version, "Scenarios", bootstrap, list(EXPECTED))
        return known[version]

    return run


@pytest.mark.parametrize("scenario", EXPECTED)
@each_version
def test_java_client_scenarios_print_the_same_as_with_apache(
    results_of: Callable[[str], Results], version: str, scenario: str
) -> None:
    results = results_of(version)

    assert results.get(scenario, "never ran") == EXPECTED[scenario], results["stderr"]
