"""Cost of TLS and SASL: producing and consuming records of 1 KB, beside Apache Kafka 4.

Both makes have the same certificates and users, and the clients are those of the other rows. The
tools' own part, encrypting on the same two cores, is in the records per second; it is not in the
broker's CPU time.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.benchmarks.measurement import contestants, performance_tools
from tests.benchmarks.measurement.report import RowReport
from tests.benchmarks.measurement.rows import FreshTopic, Result
from tests.support.brokers.broker_process import write_properties
from tests.support.security.access import Access
from tests.support.security.realm import Realm
from tests.support.security.secured_brokers import secured_broker

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tests.benchmarks.measurement.performance_tools import Throughput
    from tests.support.security.secured_brokers import SecuredBroker

RECORD_BYTES = 1024
RECORDS = 800_000
SMOKE_RECORDS = 500
WAYS_IN = {
    "TLS 1.3": Access("SSL"),
    "SASL_SSL with SCRAM-SHA-512": Access("SASL_SSL", "SCRAM-SHA-512"),
}


class SecurityRows:
    """The rows of the table that this benchmark fills."""

    def __init__(self, *, is_smoke: bool = False) -> None:
        self._records = SMOKE_RECORDS if is_smoke else RECORDS
        self._has_warm_up = not is_smoke
        self._rows = {
            (verb, way): RowReport(f"{verb} 1 KB, {way}", "records/s", "≥ 1.0")
            for way in WAYS_IN
            for verb in ("produce", "consume")
        }

    @property
    def reports(self) -> list[RowReport]:
        """In the order of the table."""
        return list(self._rows.values())

    def measure(self, makes: Sequence[str], directory: Path, rounds: int) -> None:
        """Measure brokers of each make in turns, each way in, `rounds` times."""
        with running(makes, directory) as brokers:
            for number in range(0 if self._has_warm_up else 1, rounds + 1):
                order = list(brokers) if number % 2 else list(reversed(brokers))
                for way in WAYS_IN:
                    for make in order:
                        with contestants.turn(brokers[make].process):
                            results = self._measure_once(brokers[make], way, number)
                        for verb, result in results.items() if number else ():
                            self._rows[verb, way].results[make].append(result)

    def _measure_once(self, broker: SecuredBroker, way: str, number: int) -> dict[str, Result]:
        access, process = WAYS_IN[way], broker.process
        servers, topic = broker.bootstrap(access), f"secured-{number}-{access}"
        settings = write_properties(process.directory / str(access), access.java(broker.realm))
        with FreshTopic(process, topic, 1):
            before = process.cpu_seconds()
            produced = performance_tools.produce_secured(
                servers, topic, self._records, RECORD_BYTES, settings
            )
            between = process.cpu_seconds()
            consumed = performance_tools.consume(servers, topic, topic, self._records, settings)
            after = process.cpu_seconds()
        return {
            "produce": _result(produced, between - before),
            "consume": _result(consumed, after - between),
        }


def _result(reached: Throughput, cpu_seconds: float) -> Result:
    return Result(reached.records_per_second, reached.megabytes_per_second, cpu_seconds)


@contextmanager
def running(makes: Sequence[str], directory: Path) -> Iterator[dict[str, SecuredBroker]]:
    """Start one broker of each make, freeze all, and end them afterwards."""
    realm = Realm(directory / "realm")
    brokers = {
        make: secured_broker(
            make, directory / make, realm, contestants.keys_of(make), as_its_script_does=True
        )
        for make in makes
    }
    try:
        for broker in brokers.values():
            broker.start()
            broker.process.freeze()
        yield brokers
    finally:
        for broker in brokers.values():
            broker.process.kill()
