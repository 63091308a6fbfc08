"""franz-go (Go) produces, reads and administers."""

from __future__ import annotations

from tests.interop.go import franz_go

EXPECTED = {
    "codecs": "[200 200 200 200 200]",
    "acks": "3",
    "topics": "created, TOPIC_ALREADY_EXISTS, produced, enlarged, 3, delete, deleted,"
    " UNKNOWN_TOPIC_OR_PARTITION",
}
"""Output of each scenario against Apache Kafka 4."""


def test_franz_go_scenarios_print_the_same_as_with_apache(bootstrap: str) -> None:
    assert franz_go.run_scenarios(bootstrap, *EXPECTED) == EXPECTED
