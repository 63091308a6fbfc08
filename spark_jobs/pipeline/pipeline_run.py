"""What the stages of the pipeline share: its options, Spark, and the counts so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spark_jobs.kafka.topics import open_topics
from spark_jobs.pipeline.count_check import Balance, Count
from spark_jobs.spark.streams import read_batch, run_to_end

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from spark_jobs.kafka.line_producer import Outcome
    from spark_jobs.pipeline.pipeline_options import PipelineOptions


@dataclass(slots=True)
class Run:
    """A run of the pipeline: what its stages share."""

    options: PipelineOptions
    spark: SparkSession
    balance: Balance = field(default_factory=Balance)
    outcome: Outcome | None = None
    """What producing flights came to."""

    valid: int | None = None
    """Flights that break no rule, as `route` found them."""

    def count(self, job: str, what: str, found: int, expected: int | None = None) -> None:
        """Note a count."""
        self.balance.counts.append(Count(job, what, found, expected))

    def queries(self, job: str, queries: Sequence[StreamingQuery]) -> str:
        """Run queries to their end, and say what they took in."""
        rows = run_to_end(queries, self.options.metrics(job))
        return "; ".join(f"{name} {count:,}" for name, count in rows.items())

    def records(self, topic: str) -> int:
        """Return how many records a topic holds; 0 if it is not there."""
        with open_topics(self.spark, self.options) as topics:
            if topic not in topics.names():
                return 0
        return read_batch(self.spark, self.options, [topic]).count()
