"""Downloads from package registries, and compilations, before the first test runs.

`python -m tests.support.downloads` does what is not done yet, and says what. `scripts/setup test`
ends with it, and every run of pytest begins with it: a test has a time limit, and a network none.
"""

from __future__ import annotations

import fcntl
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from spark_jobs.options import PACKAGES
from tests.support import class_archives, go_programs, jars
from tests.support.brokers.apache import apache_3, apache_4
from tests.support.brokers.broker_process import BrokerError
from tests.support.brokers.zookeeper import ZooKeeperServer
from tests.support.jars import JarsUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

TIMEOUT_SECONDS = 1200
"""For each thing: a registry that says nothing for so long is as good as away."""

ARCHIVED = (jars.KAFKA_4, jars.KAFKA_3)
"""Versions whose brokers start so often that archives of their classes are worth their time."""

SPARK_PACKAGES = ",".join(PACKAGES)

_START_SPARK = """
import sys
from pathlib import Path
from spark_jobs.options import SparkOptions
from spark_jobs.spark.spark_session import start_spark
spark = start_spark(SparkOptions(spark_log=Path(sys.argv[1])), "downloads")
print(spark.sparkContext.getConf().get("spark.jars"))
spark.stop()
"""


def fetch(say: Callable[[str], None]) -> None:
    """Fetch and compile what is missing, a word about each; raise `JarsUnavailableError`.

    Several processes may do so at once: one works, the others wait and find it done.
    """
    if not any(True for _ in missing()):
        return
    jars.CACHE.mkdir(parents=True, exist_ok=True)
    with _locked(jars.CACHE / ".lock"):
        for what, do in missing():
            say(what)
            do()


def packages_stamp() -> Path:
    """Return the file that lists the jars of Spark's packages, once they are there."""
    return jars.CACHE / "spark_packages.txt"


def missing() -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield what is missing, and how to get it; jars come before what is compiled with them."""
    for version in jars.ARTIFACTS:
        if not jars.is_resolved(version):
            yield f"Fetching Apache Kafka {version}", partial(_resolve, version)
    for name, versions in jars.PROGRAMS.items():
        source = jars.REPOSITORY / name
        for version in versions:
            if not jars.is_compiled(version, source):
                what = f"Compiling {source.name} against {version}"
                yield what, partial(_compile, version, source)
    for version in ARCHIVED:
        if not class_archives.is_made(version):
            yield f"Archiving classes of Apache Kafka {version}", partial(_archive, version)
    if not _has_packages():
        yield f"Fetching {SPARK_PACKAGES}", _resolve_packages
    if not go_programs.program().is_file() and go_programs.why_not() is None:
        yield "Building franz-go's clients", _build_go


def _resolve(version: str) -> None:
    directory = jars.CACHE / version
    directory.mkdir(exist_ok=True)
    (directory / "pom.xml").write_text(jars.pom_of(version), encoding="utf-8")
    command = [jars.java_home_tool("mvn"), "-q", "-B", "dependency:copy-dependencies"]
    outcome = _run([*command, "-DoutputDirectory=libs"], directory)
    if outcome.returncode != 0:
        lines = [line for line in outcome.stdout.splitlines() if "ERROR" in line]
        reason = lines[0] if lines else outcome.stderr.strip()
        message = f"Apache Kafka {version} cannot be resolved from Maven Central: {reason}"
        raise JarsUnavailableError(message)
    jars.resolved_stamp(version).write_text(jars.pom_of(version), encoding="utf-8")


def _compile(version: str, source: Path) -> None:
    directory = jars.classes_directory(version, source)
    directory.mkdir(parents=True, exist_ok=True)
    javac = [jars.java_home_tool("javac"), "-nowarn", "-proc:none"]
    places = ["-cp", jars.classpath(version), "-d", str(directory), str(source)]
    outcome = _run([*javac, *places], directory)
    if outcome.returncode != 0:
        raise JarsUnavailableError(f"{source.name} does not compile: {outcome.stderr}")
    jars.compiled_stamp(version, source).touch()


def _archive(version: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        try:
            if version == jars.KAFKA_4:
                class_archives.make(version, apache_4(Path(name)))
                return
            zookeeper = ZooKeeperServer(Path(name) / "zookeeper")
            zookeeper.start()
            try:
                class_archives.make(version, apache_3(Path(name), zookeeper.port, {}))
            finally:
                zookeeper.kill()
        except BrokerError as error:
            raise JarsUnavailableError(f"Apache Kafka {version} does not run: {error}") from error


def _has_packages() -> bool:
    if not packages_stamp().is_file():
        return False
    coordinates, *paths = packages_stamp().read_text(encoding="utf-8").splitlines()
    return coordinates == SPARK_PACKAGES and all(Path(path).is_file() for path in paths)


def _resolve_packages() -> None:
    """Start Spark once: its resolver keeps what it fetched in the user's home."""
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "spark.log"
        outcome = _run([sys.executable, "-c", _START_SPARK, str(log)], jars.REPOSITORY)
        if outcome.returncode != 0:
            said = log.read_text(errors="replace")[-2000:] if log.exists() else ""
            reason = outcome.stderr.strip().rpartition("\n")[2]
            raise JarsUnavailableError(f"{SPARK_PACKAGES} cannot be had: {reason}\n{said}")
    paths = outcome.stdout.split()[-1].replace("file://", "").split(",")
    lines = [SPARK_PACKAGES, *paths]
    packages_stamp().write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _build_go() -> None:
    """Build beside the place, then rename: what is there is whole."""
    program = go_programs.program()
    program.parent.mkdir(parents=True, exist_ok=True)
    unfinished = program.with_suffix(".unfinished")
    command = ["go", "build", "-trimpath", "-buildvcs=false", "-o", str(unfinished), "."]
    outcome = _run(command, go_programs.FRANZ_GO, go_programs.environment())
    if outcome.returncode != 0:
        reason = outcome.stderr.strip().rpartition("\n")[2]
        raise JarsUnavailableError(f"franz-go's clients cannot be built: {reason}")
    unfinished.rename(program)


def _run(
    command: list[str], directory: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            cwd=directory,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
            env=environment,
        )
    except subprocess.TimeoutExpired as error:
        message = f"{Path(command[0]).name} gave no answer in {TIMEOUT_SECONDS} s"
        raise JarsUnavailableError(message) from error


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep other processes from filling the same directory at the same time."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    """Fetch what is missing; return the exit code."""
    try:
        fetch(lambda what: print(what, flush=True))
    except JarsUnavailableError as error:
        print(f"downloads: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
