"""Job: compare a topic with its archive; list gaps, duplicates and differing contents.

    TOPIC  (from the begin that the broker has, to its end)   <->   DIRECTORY  and  TOPIC.rejected

Each record of the topic must be archived once, with the same key, timestamp, length and checksum,
or be rejected; and each archived row must be what was written, by its own checksum. What is not
so is told by partition and by key, gaps as ranges of offsets. Offsets without a record (control
records of transactions, aborted records, what compaction took away) are no gaps: the comparison
is with the records that the topic really has.

Of records that retention has deleted from the topic, only doubles and rows that changed after they
were archived are told; the output says which offsets that are. What other programs did to the
table's rows (DELETE, UPDATE, …) stands in its history, and is a difference too. Records beyond all
that the archive has taken are `behind`: a job that runs will still take them. They count as
differences unless --behind-is-well is given. What is in open transactions is left out, and told.

The exit code is 0 if all is exact, 1 if there are differences (or the comparison cannot be made,
which is then said), 2 for bad options. The archive may be added to and compacted meanwhile.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING

if not __package__:  # given to spark-submit as a file: let the imports below find the package
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import spark_jobs.dependency_check  # noqa: F401 - first of all: it says what is not installed

# isort: split
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pydantic import PositiveInt  # noqa: TC002 - looked up when the job runs
from pyspark.errors import PySparkException
from rich.console import Console
from rich.table import Table

from spark_jobs.archive.archive_table import FLAG, LOST, require_topic, taken_offsets
from spark_jobs.archive.audit_comparison import (
    Extent,
    archive_side,
    compare,
    rejects_side,
    topic_side,
)
from spark_jobs.archive.audit_findings import (
    Findings,
    NotCompared,
    PartitionCounts,
    TableChange,
    find,
)
from spark_jobs.errors import EXIT_FAILED, JobError, exit_code_of
from spark_jobs.kafka.offsets import open_offsets
from spark_jobs.kafka.topics import clear_errors, open_admin, open_topics
from spark_jobs.options import TOPIC_HINT, SparkOptions, TopicName, parse_options, rejected_topic
from spark_jobs.paths import require_file, writing
from spark_jobs.spark.spark_session import spark_session
from spark_jobs.spark.streams import failure_reason, persisted, read_batch
from spark_jobs.tables.open_tables import open_table, require_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

NAME = "audit"
CLEANUP_POLICY = "cleanup.policy"
WIDEST_TABLE = 1000


class AuditOptions(SparkOptions):
    """Options of the audit."""

    topic: TopicName = "flights"
    """topic to compare"""

    directory: Path = Path("data/spark_jobs/archive")
    """the archive"""

    rejects_topic: TopicName | None = None
    """topic of rejected records; TOPIC.rejected if not given"""

    rejects_of: tuple[str, ...] = ("archive",)
    """jobs whose rejects count; other jobs may reject other records"""

    behind_is_well: bool = False
    """ignore records that the archive has not reached yet"""

    list_at_most: PositiveInt = 20
    """maximum number of gaps, findings and keys to list; all are counted"""

    json_: Path | None = None
    """file to write all findings to, as JSON"""

    def rejects(self) -> str:
        """Return the topic of rejected records."""
        return rejected_topic(self.topic, self.rejects_topic)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the audit; return the process's exit code."""
    return exit_code_of(lambda: _run(argv))


def _run(argv: Sequence[str] | None) -> int:
    options = parse_options(AuditOptions, argv, NAME, __doc__)
    if options.json_ is not None:
        require_file("--json", options.json_)
    require_table(FLAG, options.directory)  # none is told before Spark starts
    with spark_session(options, NAME) as spark:
        findings = audit(spark, options)
    if options.json_ is not None:
        text = json.dumps(as_json(findings, options), indent=1)
        with writing("--json", options.json_):
            options.json_.write_text(text + "\n", encoding="utf-8")
    tell(findings, options, Console())
    return 0 if findings.is_exact(behind_is_well=options.behind_is_well) else EXIT_FAILED


def audit(spark: SparkSession, options: AuditOptions) -> Findings:
    """Compare; raise `JobError` when either side cannot be read."""
    table = open_table(spark, FLAG, options.directory)
    require_topic(table, options.topic)
    with open_topics(spark, options) as topics:
        topics.require(options.topic, TOPIC_HINT)
        has_rejects = options.rejects() in topics.names()
    # The archive first: all that it has is then before the topic's end.
    notes = table.newest_notes()
    taken, rows = taken_offsets(table, notes), table.read()
    with open_offsets(spark, options) as offsets:
        starting = offsets.earliest(options.topic)
        ending = offsets.latest(options.topic)
        beyond = offsets.high_watermarks(options.topic)
    extent = Extent(starting, ending, taken, _is_compacted(spark, options))
    there = {options.topic: starting}, {options.topic: ending}
    sides = [
        topic_side(read_batch(spark, options, [options.topic], *there)),
        archive_side(rows),
    ]
    if has_rejects:
        rejects = read_batch(spark, options, [options.rejects()])
        sides.append(rejects_side(rejects, options.topic, options.rejects_of))
    try:
        with persisted(compare(sides, extent)) as places:
            findings = find(places, extent, options.list_at_most)
    except (PySparkException, Py4JJavaError) as error:
        raise JobError(f"the comparison failed: {failure_reason(error)}") from error
    findings.changes.extend(
        TableChange(change.version, change.operation)
        for change in table.history()
        if not change.is_ours
    )
    findings.not_compared.extend(
        NotCompared(partition, first, last, 0, "they went before they were archived")
        for partition, first, last in notes.get(LOST, [])
    )
    findings.not_compared.extend(
        NotCompared(partition, end, beyond[partition] - 1, 0, "a transaction is open")
        for partition, end in ending.items()
        if end < beyond[partition]
    )
    return findings


def _is_compacted(spark: SparkSession, options: AuditOptions) -> bool:
    with open_admin(spark, options) as (admin, jvm), clear_errors(options.bootstrap_servers):
        resource = jvm.org.apache.kafka.common.config.ConfigResource
        topic = resource(getattr(resource, "Type").TOPIC, options.topic)  # noqa: B009 - not Python's
        described = admin.describeConfigs(jvm.java.util.List.of(topic)).all().get().get(topic)
        return "compact" in str(described.get(CLEANUP_POLICY).value())


def as_json(findings: Findings, options: AuditOptions) -> dict[str, object]:
    """Return all that was found, for programs."""
    return {
        "topic": options.topic,
        "directory": str(options.directory),
        "exact": findings.is_exact(behind_is_well=options.behind_is_well),
        **asdict(findings),
    }


def tell(findings: Findings, options: AuditOptions, console: Console) -> None:
    """Print what was found, for people."""
    table = _table(findings, options)
    # Numbers cut off to fit a narrow terminal, or a file, would tell nothing.
    unbounded = console.options.update(max_width=WIDEST_TABLE)
    console.width = max(console.width, console.measure(table, options=unbounded).maximum)
    console.print(table)
    for line in _lines(findings):
        console.print(line, highlight=False, markup=False)
    console.print(_verdict(findings, options), highlight=False)


def _lines(findings: Findings) -> Iterator[str]:
    for gap in findings.gaps:
        yield (
            f"{gap.state}: partition {gap.partition}, offsets {gap.first_offset} to "
            f"{gap.last_offset}, {gap.records:,} records"
        )
    for found in findings.findings:
        yield (
            f"record: partition {found.partition}, offset {found.offset}, key {found.key}: "
            f"{found.what}"
        )
    for key in findings.key_differences:
        yield (
            f"key {key.key}: {key.produced:,} produced, {key.archived:,} archived; checksums "
            f"{key.produced_crc32:x} and {key.archived_crc32:x}"
        )
    for change in findings.changes:
        yield f"changed by another program: version {change.version}, {change.operation}"
    for left in findings.not_compared:
        yield (
            f"not compared: partition {left.partition}, offsets {left.first_offset} to "
            f"{left.last_offset}, of which {left.archived:,} are archived: {left.why}"
        )


def _table(findings: Findings, options: AuditOptions) -> Table:
    table = Table(title=f"{options.topic} and {options.directory}", title_justify="left")
    for column in fields(PartitionCounts):
        table.add_column(column.name.replace("_", " "), justify="right")
    for counts in findings.partitions:
        table.add_row(*(f"{value:,}" for value in asdict(counts).values()))
    return table


def _verdict(findings: Findings, options: AuditOptions) -> str:
    counts = (
        f"{findings.total('records'):,} records, {findings.total('archived'):,} archived, "
        f"{findings.total('rejected'):,} rejected, {findings.keys:,} keys"
    )
    if findings.is_exact(behind_is_well=options.behind_is_well):
        behind = findings.total("behind")
        return f"exact: {counts}" + (f"; {behind:,} not taken yet" if behind else "")
    names = ("missing", "behind", "doubled", "differing", "damaged", "stray")
    counted = {name: findings.total(name) for name in names}
    counted["changes by other programs"] = len(findings.changes)
    wrong = ", ".join(f"{n:,} {name}" for name, n in counted.items() if n)
    return f"differences: {wrong}, at {findings.differing_keys:,} keys ({counts})"


if __name__ == "__main__":
    sys.exit(main())
