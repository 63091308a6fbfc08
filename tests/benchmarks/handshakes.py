"""Effect of a storm of TLS handshakes on producers: 500 a second while records of 1 KB flow.

    python -m tests.benchmarks.handshakes [--smoke]

One producer sends a batch of sixteen records every 4 ms, 4 MB/s, on a listener without TLS, and
waits for each answer. Its 99th percentile is taken alone and in the storm, in turns. A sender that
is late counts from when it should have sent, so that a broker which answers nobody for a while is
not measured once only.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.headers import request_front
from protocol.messages.produce import ProduceRequest
from protocol.records.builder import NewRecord, build_batch
from tests.benchmarks.measurement import contestants
from tests.benchmarks.measurement.contestants import OURS
from tests.benchmarks.measurement.report import RowReport
from tests.benchmarks.measurement.rows import FreshTopic, Result
from tests.benchmarks.measurement.timing import is_smoke_run
from tests.benchmarks.security import running
from tests.support.jars import REPOSITORY
from tests.support.wire import RawConnection

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.support.security.secured_brokers import SecuredBroker

PER_SECOND = 500
INTERVAL_SECONDS = 0.004
RECORDS, RECORD_BYTES = 16, 1024
SECONDS, SMOKE_SECONDS = 8.0, 0.5
WARM_UP_SECONDS = 1.0
PRODUCE_VERSION = 8
ROUNDS = 3
ERROR_AT = 4 + 4 + 2 + 4 + 4
"""In an answer without its size, besides the topic's name: behind it, and the partition."""
STORM = "tests.benchmarks.measurement.handshake_storm"


class HandshakeRows:
    """The rows of the table that this benchmark fills."""

    def __init__(self, *, is_smoke: bool = False) -> None:
        self._seconds = SMOKE_SECONDS if is_smoke else SECONDS
        self._alone = RowReport("produce 1 KB, 99th percentile", "ms", "")
        self._stormy = RowReport(f"the same, with {PER_SECOND} TLS handshakes/s", "ms", "")
        self._done = RowReport("TLS handshakes meanwhile", "per s", "")

    @property
    def reports(self) -> list[RowReport]:
        """In the order of the table."""
        return [self._alone, self._stormy, self._done]

    @property
    def factor(self) -> float:
        """Return the ratio of producers' latency in the storm to that alone, by the medians."""
        alone, stormy = (
            median(result.value for result in row.results[OURS])
            for row in (self._alone, self._stormy)
        )
        return stormy / alone

    def measure(self, makes: Sequence[str], directory: Path, rounds: int) -> None:
        """Measure brokers of each make in turns, alone and in the storm, `rounds` times."""
        with running(makes, directory) as brokers:
            for number in range(rounds):
                for make, broker in brokers.items():
                    with contestants.turn(broker.process):
                        self._measure_once(make, broker, f"storm-{number}")

    def _measure_once(self, make: str, broker: SecuredBroker, topic: str) -> None:
        with (
            FreshTopic(broker.process, topic, 1),
            RawConnection.open(broker.ports.plaintext) as connection,
        ):
            flow = _Flow(connection, topic)
            flow.p99_ms(min(WARM_UP_SECONDS, self._seconds))
            before = broker.process.cpu_seconds()
            self._alone.results[make].append(
                Result(
                    flow.p99_ms(self._seconds), cpu_seconds=broker.process.cpu_seconds() - before
                )
            )
            before = broker.process.cpu_seconds()
            with _storm(broker, self._seconds + WARM_UP_SECONDS) as storm:
                reached = flow.p99_ms(self._seconds)
                cpu_seconds = broker.process.cpu_seconds() - before
                self._stormy.results[make].append(Result(reached, cpu_seconds=cpu_seconds))
            self._done.results[make].append(Result(storm.per_second))


class _Flow:
    """One producer, which sends on time and waits for each answer."""

    def __init__(self, connection: RawConnection, topic: str) -> None:
        self._connection = connection
        self._error_at = ERROR_AT + len(topic)
        now_ms = int(time.time() * 1000)  # noqa: TID251 - records have the time of the machine
        batch = build_batch([NewRecord(now_ms, None, bytes(RECORD_BYTES))] * RECORDS)
        kind = ProduceRequest.TopicData
        topics = [kind(name=topic, partition_data=[kind.PartitionData(index=0, records=batch)])]
        request = ProduceRequest(acks=1, timeout_ms=30_000, topic_data=topics)
        body = request.encode(PRODUCE_VERSION)
        front = request_front(1, ApiKey.PRODUCE, PRODUCE_VERSION, b"flow", len(body))
        self._frame = bytes(front) + bytes(body)

    def p99_ms(self, seconds: float) -> float:
        """Send for so long; what one in a hundred answers exceeds."""
        waited = []
        began = time.perf_counter()
        for number in range(int(seconds / INTERVAL_SECONDS)):
            due = began + number * INTERVAL_SECONDS
            time.sleep(max(0.0, due - time.perf_counter()))
            self._connection.send(self._frame)
            answer = self._connection.receive()
            waited.append(time.perf_counter() - due)
            assert answer[self._error_at : self._error_at + 2] == bytes(2), answer
        return sorted(waited)[int(len(waited) * 0.99)] * 1000


@dataclass(slots=True)
class _Storm:
    per_second: float = 0.0


@contextmanager
def _storm(broker: SecuredBroker, seconds: float) -> Iterator[_Storm]:
    """Have clients shake hands while the block lasts, on the listener with SASL."""
    ca_file = broker.realm.authority.pem_file(broker.realm.directory)
    arguments = [str(broker.ports.sasl_ssl), str(ca_file), str(PER_SECOND), str(seconds)]
    storm = _Storm()
    with subprocess.Popen(
        [sys.executable, "-m", STORM, *arguments], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    ) as process:
        time.sleep(min(WARM_UP_SECONDS, seconds) / 2)  # in which it starts
        yield storm
        said, _ = process.communicate()
    done, took = said.split()
    storm.per_second = int(done) / float(took)


def main(arguments: Sequence[str] | None = None) -> HandshakeRows:
    """Measure our broker, print and return the rows."""
    is_smoke = is_smoke_run("What a storm of TLS handshakes does to producers.", arguments)
    rows = HandshakeRows(is_smoke=is_smoke)
    with tempfile.TemporaryDirectory() as directory:
        rows.measure((OURS,), Path(directory), 1 if is_smoke else ROUNDS)
    for row in rows.reports:
        values = ", ".join(f"{result.value:.2f}" for result in row.results[OURS])
        spent = ", ".join(f"{one.cpu_seconds:.2f}" for one in row.results[OURS] if one.cpu_seconds)
        print(f"{row.name:40} {row.unit:>6} {values:32} {spent and 'broker CPU s: '}{spent}")
    print(f"{'factor':40} {'':>6} {rows.factor:.2f}")
    return rows


if __name__ == "__main__":
    main()
