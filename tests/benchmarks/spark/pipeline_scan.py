"""Speed at which Spark reads a topic whole as a batch, beside a plain consumer of the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from tests.benchmarks.measurement import performance_tools
from tests.benchmarks.measurement.report import RowReport
from tests.benchmarks.measurement.rows import FreshTopic, Result
from tests.benchmarks.spark.pipeline_jobs import PARTITIONS, PipelineBenchError, Stopwatch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.brokers.broker_process import BrokerProcess

RECORD_BYTES = 1024
MEGABYTE = 1 << 20
READS = 3
"""Reads of the filled topic by each reader."""


class ScanRows:
    """The rows of both readers."""

    def __init__(self, megabytes: int, reads: int = READS) -> None:
        self._records = megabytes * MEGABYTE // RECORD_BYTES
        self._reads = reads
        size = f"a topic of {megabytes:,} MiB, records of {RECORD_BYTES} B"
        self.spark = RowReport(f"Spark batch scan of {size}", "MB/s", "≥ 1.0")
        self.plain = RowReport(f"plain consumer of {size}", "MB/s", "≥ 1.0")

    @property
    def reports(self) -> list[RowReport]:
        """In the order of the table."""
        return [self.spark, self.plain]

    def measure(self, spark: SparkSession, broker: BrokerProcess, make: str, topic: str) -> None:
        """Fill a topic, unmeasured, and read it with both in turn, a first time to warm up."""
        with FreshTopic(broker, topic, PARTITIONS):
            performance_tools.produce(broker.bootstrap, topic, self._records, RECORD_BYTES)
            for number in range(self._reads + 1):
                scanned = scan(spark, broker, topic, self._records)
                consumed = self._consume(broker, topic, f"{topic}-{number}")
                if number > 0 or self._reads == 0:
                    self.spark.results[make].append(scanned)
                    self.plain.results[make].append(consumed)

    def _consume(self, broker: BrokerProcess, topic: str, group: str) -> Result:
        with Stopwatch(broker) as watch:
            reached = performance_tools.consume(broker.bootstrap, topic, group, self._records)
        return Result(reached.megabytes_per_second, cpu_seconds=watch.cpu_seconds)


def scan(spark: SparkSession, broker: BrokerProcess, topic: str, records: int) -> Result:
    """Count a topic's records and bytes by Spark's batch source; all of them must be there."""
    with Stopwatch(broker) as watch:
        rows = (
            spark.read.format("kafka")
            .option("kafka.bootstrap.servers", broker.bootstrap)
            .option("subscribe", topic)
            .load()
            .agg(F.count("*"), F.sum(F.octet_length("value")))
            .collect()
        )
    if tuple(rows[0]) != (records, records * RECORD_BYTES):
        raise PipelineBenchError(f"Spark read {tuple(rows[0])} of {records} records of {topic}")
    megabytes = records * RECORD_BYTES / MEGABYTE
    return Result(megabytes / watch.seconds, cpu_seconds=watch.cpu_seconds)
