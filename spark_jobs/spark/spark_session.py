"""Starting Spark, with one clear line for each thing that can be missing."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_jobs.avro.decoded_rows import use_this_python
from spark_jobs.errors import JobError, take_signals
from spark_jobs.kafka.reachable import check_master, check_reachable
from spark_jobs.options import EXCLUDED_PACKAGES
from spark_jobs.paths import require_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_jobs.options import SparkOptions

JAVA_OLDEST = 17
JAVA_TIMEOUT_SECONDS = 20
DEBIAN_PACKAGE = "openjdk-17-jre-headless"

FIXED_SETTINGS = {
    # A record may hold any nonsense: an expression that overflows gives NULL, not a dead job.
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    # The stock reader that asks brokers for offsets as an admin client: it joins no group.
    "spark.sql.streaming.kafka.useDeprecatedOffsetFetching": "false",
    # Of a map of a record, whose entries keep their order in a file as well.
    "spark.sql.legacy.allowHashOnMapType": "true",
    # Spark 4.1's newer reader of Kafka fails when it ends a batch that a killed driver had planned:
    # it reports lag by offsets that it has not asked for (SPARK-55271). The older one does not.
    "spark.sql.streaming.disabledV2MicroBatchReaders": (
        "org.apache.spark.sql.kafka010.KafkaSourceProvider"
    ),
    # In the C locale, that of cron and systemd, Java 17 reads bytes as ASCII unless it is told
    # otherwise, and Spark does not tell it when it takes JSON apart.
    "spark.driver.defaultJavaOptions": "-Dfile.encoding=UTF-8",
    "spark.executor.defaultJavaOptions": "-Dfile.encoding=UTF-8",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.jars.excludes": EXCLUDED_PACKAGES,
    "spark.sql.extensions": (
        "io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
    ),
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Defaults for tables of millions of files: 50 tasks to read a log, 10,000 to list files.
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16",
}

CLASSES = {
    "the Kafka connector": "org/apache/spark/sql/kafka010/KafkaSourceProvider.class",
    "Delta Lake": "io/delta/sql/DeltaSparkSessionExtension.class",
    "Iceberg": "org/apache/iceberg/spark/SparkCatalog.class",
}
"""One of each package, by which it is recognized."""


def is_submitted() -> bool:
    """Say whether `spark-submit` started this process: then Spark's JVM runs already."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


@contextmanager
def spark_session(options: SparkOptions, app_name: str) -> Iterator[SparkSession]:
    """Start Spark, and stop it at the end.

    Raises `JobError` when no broker or no Spark master listens, when Java is missing or too old,
    or when Spark does not start, in this order, so that the quick checks come first.
    """
    check_reachable(options.bootstrap_servers)
    require_file("--spark-log", options.spark_log)
    with started_spark(options, app_name) as spark:
        yield spark


@contextmanager
def started_spark(options: SparkOptions, app_name: str) -> Iterator[SparkSession]:
    """Start Spark without a look for a broker, and stop it at the end.

    Raises `JobError` as `start_spark` does, and when Spark's JVM ends before the job does.
    """
    spark = start_spark(options, app_name)
    try:
        try:
            yield spark
        finally:
            spark.stop()
    except (Py4JError, ConnectionError) as error:
        if isinstance(error, Py4JJavaError):
            raise
        raise JobError(
            f"Spark's Java process has ended, killed or for want of memory (--driver-memory); "
            f"its own words are in {options.spark_log}"
        ) from error


def start_spark(options: SparkOptions, app_name: str) -> SparkSession:
    """Start Spark with the Kafka connector, Delta Lake and Iceberg on its class path."""
    if not is_submitted():
        check_master(options.master)
        check_java()
        use_this_python()
    conf = SparkConf().setAppName(app_name).setAll(list(_settings(options).items()))
    try:
        with _output_to(None if is_submitted() else options.spark_log), _no_orphans():
            SparkContext.getOrCreate(conf)
            # Spark's own handler of Ctrl-C speaks to the JVM in the middle of another call.
            take_signals()
            spark = SparkSession.builder.config(conf=conf).getOrCreate()
    except (PySparkException, Py4JJavaError, OSError) as error:
        raise JobError(
            f"Spark did not start ({_one_line(error)}); its own words are in {options.spark_log}"
        ) from error
    spark.sparkContext.setLogLevel(options.log_level)
    _check_packages(spark, options.packages)
    return spark


def check_java() -> None:
    """Raise `JobError` unless a Java that Spark runs on is installed."""
    java = _java()
    if java is None:
        raise JobError(
            f"Spark needs Java {JAVA_OLDEST} or newer, and there is no `java`: "
            f"install {DEBIAN_PACKAGE} (Debian), or set JAVA_HOME"
        )
    version = _java_version(java)
    if version is not None and version < JAVA_OLDEST:
        raise JobError(
            f"Spark needs Java {JAVA_OLDEST} or newer, {java} is Java {version}: "
            f"install {DEBIAN_PACKAGE} (Debian), or set JAVA_HOME"
        )


def _settings(options: SparkOptions) -> dict[str, str]:
    settings = {
        **FIXED_SETTINGS,
        "spark.sql.shuffle.partitions": str(options.shuffle_partitions),
        # Of Spark's own catalog, which the jobs leave empty; without it, a directory of the caller.
        "spark.sql.warehouse.dir": str(options.spark_log.absolute().parent / "warehouse"),
    }
    if not is_submitted():
        settings |= {
            "spark.jars.packages": options.packages,
            "spark.driver.memory": options.driver_memory,
            "spark.log.level": options.log_level,
        }
    if not is_submitted() or "master" in options.model_fields_set:
        settings["spark.master"] = options.master
    return {**settings, **options.spark}


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if not java.exists():
            raise JobError(f"JAVA_HOME is {home}, and there is no bin/java in it")
        return str(java)
    return shutil.which("java")


def _java_version(java: str) -> int | None:
    try:
        outcome = subprocess.run(  # noqa: S603 - the Java that Spark itself will start
            [java, "-version"],
            capture_output=True,
            text=True,
            timeout=JAVA_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JobError(f"{java} -version does not run: {error}") from error
    found = re.search(r'version "(?:1\.)?(\d+)', outcome.stderr)
    return int(found[1]) if found else None


def _check_packages(spark: SparkSession, packages: str) -> None:
    jvm = spark.sparkContext._jvm  # noqa: SLF001 - the only way to the classes beside Spark
    assert jvm is not None
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    lacking = [name for name, file in CLASSES.items() if loader.getResource(file) is None]
    if lacking:
        spark.stop()
        raise JobError(
            f"Spark lacks {' and '.join(lacking)}: spark-submit --packages {packages} "
            f"--exclude-packages {EXCLUDED_PACKAGES} …"
        )


@contextmanager
def _output_to(log: Path | None) -> Iterator[None]:
    """Let processes that start meanwhile write their errors to `log` for all their life."""
    if log is None:
        yield
        return
    sys.stderr.flush()
    kept = os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextmanager
def _no_orphans() -> Iterator[None]:
    """End the JVM if its start is given up: left alone it would never find out."""
    before = _children()
    try:
        yield
    except BaseException:
        for child in _children() - before:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGTERM)
        raise


def _children() -> frozenset[int]:
    """Processes this one has started, as far as the system tells (Linux does)."""
    lists = Path("/proc/self/task").glob("*/children")
    return frozenset(int(child) for path in lists for child in path.read_text().split())


def _one_line(error: Exception) -> str:
    said = error.java_exception.toString() if isinstance(error, Py4JJavaError) else str(error)
    return str(said).strip().partition("\n")[0]
