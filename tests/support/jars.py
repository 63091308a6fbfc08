"""Apache Kafka's published artifacts, resolved once by Maven into `build/apache/`.

Each version is a directory of jars; `classpath(version)` is what `java -cp` wants. The
directory is trusted only when the list of what was asked for, written last, is there.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

KAFKA_4 = "4.3.1"
KAFKA_3 = "3.9.1"
CLIENTS_2 = "2.8.2"
STREAMS = "streams-4.3.1"

ARTIFACTS = {
    KAFKA_4: ("kafka_2.13", "kafka-tools"),
    KAFKA_3: ("kafka_2.13", "kafka-tools"),
    CLIENTS_2: ("kafka-clients",),
    STREAMS: ("kafka-streams",),
}
"""What each set of jars is resolved from; a set is named after its version, which it ends with."""

REPOSITORY = Path(__file__).resolve().parents[2]
CACHE = REPOSITORY / "build" / "apache"
MAVEN_TIMEOUT_SECONDS = 600

_DEPENDENCY = (
    "<dependency><groupId>org.apache.kafka</groupId>"
    "<artifactId>{artifact}</artifactId><version>{version}</version></dependency>"
)
_POM = (
    '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
    "<groupId>build.apache</groupId><artifactId>libs</artifactId><version>1</version>"
    "<dependencies>{dependencies}</dependencies></project>\n"
)


class JarsUnavailableError(RuntimeError):
    """Apache's jars cannot be had; the message is one line and says what to do."""


def libs(version: str) -> Path:
    """Return the directory that holds the jars of `version`, resolving them if need be."""
    directory = CACHE / version
    jars = directory / "libs"
    pom = _pom_of(version)
    stamp = directory / "resolved.xml"
    if _is_resolved(stamp, pom):
        return jars
    with _locked(directory):
        if not _is_resolved(stamp, pom):
            _resolve(version, directory, pom)
            stamp.write_text(pom, encoding="utf-8")
    return jars


def classpath(version: str) -> str:
    """Return the class path of everything in `libs(version)`."""
    return f"{libs(version)}/*"


def jar(version: str, artifact: str) -> Path:
    """Return one jar of `version`, for example `jar("4.3.1", "kafka-clients")`."""
    return libs(version) / f"{artifact}-{version}.jar"


def java_home_tool(name: str) -> str:
    """Return the path of `java`, `javac` or `mvn`, or say which Debian package has it."""
    found = shutil.which(name)
    if found is None:
        package = "maven" if name == "mvn" else "openjdk-17-jdk-headless"
        message = f"`{name}` is missing: install the Debian package {package}"
        raise JarsUnavailableError(message)
    return found


def compiled(version: str, source: Path) -> Path:
    """Compile one Java source file against `version` and return the directory of classes."""
    text = source.read_text(encoding="utf-8")
    directory = CACHE / version / "classes" / source.stem
    stamp = directory / "compiled.java"
    if _is_resolved(stamp, text):
        return directory
    classes = classpath(version)
    with _locked(directory):
        if not _is_resolved(stamp, text):
            _compile(source, classes, directory)
            stamp.write_text(text, encoding="utf-8")
    return directory


def _compile(source: Path, classes: str, directory: Path) -> None:
    outcome = subprocess.run(
        [
            *(java_home_tool("javac"), "-nowarn", "-proc:none", "-cp", classes),
            *("-d", str(directory), str(source)),
        ],
        capture_output=True,
        text=True,
        timeout=MAVEN_TIMEOUT_SECONDS,
        check=False,
    )
    if outcome.returncode != 0:
        message = f"{source.name} does not compile: {outcome.stderr}"
        raise JarsUnavailableError(message)


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Keep other processes from filling the same directory at the same time."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_resolved(stamp: Path, wanted: str) -> bool:
    return stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted


def _pom_of(version: str) -> str:
    number = version.rpartition("-")[2]
    dependencies = (
        _DEPENDENCY.format(artifact=artifact, version=number) for artifact in ARTIFACTS[version]
    )
    return _POM.format(dependencies="".join(dependencies))


def _resolve(version: str, directory: Path, pom: str) -> None:
    (directory / "pom.xml").write_text(pom, encoding="utf-8")
    command = [java_home_tool("mvn"), "-q", "-B", "dependency:copy-dependencies"]
    try:
        outcome = subprocess.run(
            [*command, "-DoutputDirectory=libs"],
            cwd=directory,
            capture_output=True,
            text=True,
            timeout=MAVEN_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        message = f"Apache Kafka {version}: Maven gave no answer in {MAVEN_TIMEOUT_SECONDS} s"
        raise JarsUnavailableError(message) from error
    if outcome.returncode != 0:
        lines = [line for line in outcome.stdout.splitlines() if "ERROR" in line]
        reason = lines[0] if lines else outcome.stderr.strip()
        message = f"Apache Kafka {version} cannot be resolved from Maven Central: {reason}"
        raise JarsUnavailableError(message)
