"""Kafka's performance tools, each run in a JVM of its own, and what they printed.

They have none that commits after so many records: that one is a program of ours.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.support import jars
from tests.support.tools import CLASSES

TOOL_HEAP = "-Xmx512m"
TOOL_TIMEOUT_SECONDS = 600

_PRODUCED = re.compile(r"(\d+) records sent, ([\d.]+) records/sec \(([\d.]+) MB/sec\)")
_READ = re.compile(r"(\d+) records read, ([\d.]+) records/sec \(([\d.]+) MB/sec\)")
_AVERAGE_LATENCY = re.compile(r"Avg latency: ([\d.]+) ms")


@dataclass(frozen=True, slots=True)
class Throughput:
    """Throughput of a producer or consumer tool over its whole run."""

    records: int
    records_per_second: float
    megabytes_per_second: float


@dataclass(frozen=True, slots=True)
class TransactionLoad:
    """Records sent in transactions; `records` is a multiple of `producers`."""

    records: int
    record_bytes: int
    records_per_transaction: int
    producers: int


class PerformanceToolError(RuntimeError):
    """A performance tool failed or printed no result."""


def produce(
    bootstrap: str, topic: str, records: int, record_bytes: int, codec: str = "none"
) -> Throughput:
    """Run ProducerPerformance as fast as it goes, with the client's defaults."""
    options = ("--command-property", f"compression.type={codec}")
    return _produce(bootstrap, topic, records, record_bytes, options)


def produce_secured(
    bootstrap: str, topic: str, records: int, record_bytes: int, settings: Path
) -> Throughput:
    """The same, with a property file that says how the client gets in."""
    options = ("--command-config", str(settings))
    return _produce(bootstrap, topic, records, record_bytes, options)


def _produce(
    bootstrap: str, topic: str, records: int, record_bytes: int, options: tuple[str, ...]
) -> Throughput:
    output = _run(
        "producer-perf-test",
        *("--topic", topic, "--num-records", str(records), "--record-size", str(record_bytes)),
        *("--throughput", "-1", "--bootstrap-server", bootstrap, *options),
    )
    return produced(output, records)


def produce_in_transactions(bootstrap: str, topic: str, load: TransactionLoad) -> Throughput:
    """Run producers beside each other that commit after every so many records."""
    classpath = f"{_own_classes('TransactionLoad')}:{jars.classpath(jars.KAFKA_4)}"
    sizes = (load.records, load.record_bytes, load.records_per_transaction, load.producers)
    arguments = [bootstrap, topic, *map(str, sizes)]
    output = _run_class(classpath, "TransactionLoad", *arguments)
    return produced(output, load.records)


def produced(output: str, expected: int) -> Throughput:
    """Read ProducerPerformance's last summary; every record must have been sent."""
    totals = [match for match in _PRODUCED.finditer(output) if int(match[1]) == expected]
    if not totals or "Exception" in output:
        raise PerformanceToolError(f"ProducerPerformance did not send {expected}:\n{output}")
    return Throughput(expected, float(totals[-1][2]), float(totals[-1][3]))


def consume(
    bootstrap: str, topic: str, group: str, records: int, settings: Path | None = None
) -> Throughput:
    """Run ConsumerPerformance from the earliest offset; joining the group is not counted."""
    options = () if settings is None else ("--command-config", str(settings))
    output = _run(
        "consumer-perf-test",
        *("--bootstrap-server", bootstrap, "--topic", topic, "--group", group),
        *("--num-records", str(records), "--hide-header", *options),
    )
    return consumed(output, records)


def consumed(output: str, expected: int) -> Throughput:
    """Read ConsumerPerformance's line; at least `expected` records must have been read."""
    rows = [line.split(", ") for line in output.splitlines() if line.count(",") >= 9]
    if not rows or int(rows[-1][4]) < expected:
        raise PerformanceToolError(f"ConsumerPerformance did not read {expected}:\n{output}")
    row = rows[-1]
    return Throughput(int(row[4]), float(row[9]), float(row[8]))


def share(bootstrap: str, topic: str, records: int, consumers: int) -> Throughput:
    """Run ShareConsumerPerformance in a group named like the topic; joining it is counted."""
    output = _run(
        "share-consumer-perf-test",
        *("--bootstrap-server", bootstrap, "--topic", topic, "--group", topic, "--hide-header"),
        *("--num-records", str(records), "--threads", str(consumers)),
        *("--timeout", str(TOOL_TIMEOUT_SECONDS * 1000)),
    )
    rows = [line.split(", ") for line in output.splitlines() if line.count(", ") == 6]
    if not rows or int(rows[-1][5]) < records:
        raise PerformanceToolError(f"ShareConsumerPerformance did not read {records}:\n{output}")
    row = rows[-1]
    return Throughput(int(row[5]), float(row[4]), float(row[3]))


def share_explicitly(bootstrap: str, topic: str, records: int, consumers: int) -> Throughput:
    """Run share consumers that acknowledge each record; joining the group is not counted."""
    classpath = f"{_own_classes('ShareLoad')}:{jars.classpath(jars.KAFKA_4)}"
    arguments = [bootstrap, topic, str(records), str(consumers), "explicit"]
    output = _run_class(classpath, "ShareLoad", *arguments)
    found = _READ.search(output)
    if found is None or int(found[1]) < records:
        raise PerformanceToolError(f"ShareLoad did not read {records}:\n{output}")
    return Throughput(int(found[1]), float(found[2]), float(found[3]))


def mean_latency_ms(bootstrap: str, topic: str, records: int, record_bytes: int) -> float:
    """Run EndToEndLatency (acks=all): one record at a time, producer to consumer."""
    output = _run("e2e-latency", bootstrap, topic, str(records), "all", str(record_bytes))
    found = _AVERAGE_LATENCY.search(output)
    if found is None:
        raise PerformanceToolError(f"EndToEndLatency printed no average:\n{output}")
    return float(found[1])


def _own_classes(program: str) -> Path:
    return jars.compiled(jars.KAFKA_4, Path(__file__).parents[1] / "java" / f"{program}.java")


def _run(tool: str, *arguments: str) -> str:
    return _run_class(jars.classpath(jars.KAFKA_4), CLASSES[jars.KAFKA_4][tool], *arguments)


def _run_class(classpath: str, main_class: str, *arguments: str) -> str:
    java = [jars.java_home_tool("java"), TOOL_HEAP, "-cp", classpath]
    outcome = subprocess.run(
        [*java, main_class, *arguments],
        capture_output=True,
        text=True,
        timeout=TOOL_TIMEOUT_SECONDS,
        check=False,
    )
    said = outcome.stdout + outcome.stderr
    if outcome.returncode != 0:
        raise PerformanceToolError(f"{main_class} {' '.join(arguments)}:\n{said}")
    return outcome.stdout + outcome.stderr
