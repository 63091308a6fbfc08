"""franz-go (Go) commits and aborts transactions, and copies exactly once."""

from __future__ import annotations

from tests.interop.go import franz_go

EXPECTED = {
    "transactions": "0 2",
    "copied": "300 records, 300 distinct, committed to 300",
}
"""Output of each scenario against Apache Kafka 4."""


def test_franz_go_sees_only_what_it_committed(bootstrap: str) -> None:
    assert franz_go.run_scenarios(bootstrap, *EXPECTED) == EXPECTED
