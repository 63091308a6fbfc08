"""Paths of Apache Kafka's published artifacts, and of the classes compiled against them.

Each version is a directory of jars in `build/apache/`; `classpath(version)` is what `java -cp`
wants. Nothing here downloads or compiles: tests have time limits, networks have none. All that is
missing comes by `tests.support.downloads`, which runs before the first test.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

KAFKA_4 = "4.4.0"
KAFKA_4_3 = "4.3.1"
KAFKA_3 = "3.9.1"
CLIENTS_2 = "2.8.2"
STREAMS = "streams-4.4.0"
STREAMS_4_3 = "streams-4.3.1"

ARTIFACTS = {
    KAFKA_4: ("kafka_2.13", "kafka-tools"),
    KAFKA_4_3: ("kafka_2.13", "kafka-tools"),
    KAFKA_3: ("kafka_2.13", "kafka-tools"),
    CLIENTS_2: ("kafka-clients",),
    STREAMS: ("kafka-streams",),
    STREAMS_4_3: ("kafka-streams",),
}
"""Artifacts that each set of jars is resolved from; a set is named after the version it ends
with."""

PROGRAMS = {
    "tests/benchmarks/java/ShareLoad.java": (KAFKA_4,),
    "tests/benchmarks/java/TransactionLoad.java": (KAFKA_4,),
    "tests/golden/GoldenBatches.java": (KAFKA_4,),
    "tests/golden/GoldenConfigs.java": (KAFKA_4,),
    "tests/golden/GoldenMessages.java": (KAFKA_3, KAFKA_4_3, KAFKA_4),
    "tests/golden/GoldenPatterns.java": (KAFKA_4,),
    "tests/golden/GoldenQuotas.java": (KAFKA_4,),
    "tests/golden/GoldenText.java": (KAFKA_4,),
    "tests/interop/java/Delays.java": (CLIENTS_2, KAFKA_4_3, KAFKA_4),
    "tests/interop/java/MovedLeader.java": (KAFKA_4,),
    "tests/interop/java/ConsumerProtocol.java": (KAFKA_4,),
    "tests/interop/java/ReadBack.java": (CLIENTS_2, KAFKA_4),
    "tests/interop/java/ShareConsumers.java": (KAFKA_4,),
    "tests/interop/java/Scenarios.java": (CLIENTS_2, KAFKA_3, KAFKA_4_3, KAFKA_4),
    "tests/interop/java/Secured.java": (CLIENTS_2, KAFKA_3, KAFKA_4_3, KAFKA_4),
    "tests/interop/java/SteadyLoad.java": (KAFKA_4,),
    "tests/interop/java/Transactions.java": (CLIENTS_2, KAFKA_3, KAFKA_4_3, KAFKA_4),
    "tests/interop/java/WordCount.java": (STREAMS_4_3, STREAMS),
    "tests/support/ToolRunner.java": (KAFKA_3, KAFKA_4_3, KAFKA_4),
}
"""The Java programs of the tests, and the sets of jars that each is compiled against."""

REPOSITORY = Path(__file__).resolve().parents[2]
CACHE = REPOSITORY / "build" / "apache"

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
    """Return the directory that holds the jars of `version`."""
    if not is_resolved(version):
        raise _missing(f"Apache Kafka {version}")
    return CACHE / version / "libs"


def classpath(version: str) -> str:
    """Return the class path of everything in `libs(version)`."""
    return f"{libs(version)}/*"


def jar(version: str, artifact: str) -> Path:
    """Return one jar of `version`, for example `jar("4.4.0", "kafka-clients")`."""
    return libs(version) / f"{artifact}-{version}.jar"


def compiled(version: str, source: Path) -> Path:
    """Return the directory of the classes of a Java program, compiled against `version`."""
    if not is_compiled(version, source):
        raise _missing(f"{source.name}, compiled against {version},")
    return classes_directory(version, source)


def java_home_tool(name: str) -> str:
    """Return the path of `java`, `javac` or `mvn`, or say which Debian package has it."""
    found = shutil.which(name)
    if found is None:
        package = "maven" if name == "mvn" else "openjdk-17-jdk-headless"
        message = f"`{name}` is missing: install the Debian package {package}"
        raise JarsUnavailableError(message)
    return found


def pom_of(version: str) -> str:
    """Return what Maven is given to resolve `version` from."""
    number = version.rpartition("-")[2]
    dependencies = (
        _DEPENDENCY.format(artifact=artifact, version=number) for artifact in ARTIFACTS[version]
    )
    return _POM.format(dependencies="".join(dependencies))


def resolved_stamp(version: str) -> Path:
    """Return the file that holds the `pom_of` a version whose jars are all there."""
    return CACHE / version / "resolved.xml"


def is_resolved(version: str) -> bool:
    """Say whether all jars of `version` are there, and are what is asked for today."""
    stamp = resolved_stamp(version)
    return stamp.is_file() and stamp.read_text(encoding="utf-8") == pom_of(version)


def classes_directory(version: str, source: Path) -> Path:
    """Return where the classes of a program are kept: no two texts of it share a directory."""
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:12]
    return CACHE / version / "classes" / f"{source.stem}-{digest}"


def compiled_stamp(version: str, source: Path) -> Path:
    """Return the file that is written when all classes of a program are."""
    return classes_directory(version, source) / "compiled"


def is_compiled(version: str, source: Path) -> bool:
    """Say whether the classes of a program are there, as its text is today."""
    return compiled_stamp(version, source).is_file()


def _missing(what: str) -> JarsUnavailableError:
    return JarsUnavailableError(f"{what} is not there: `python -m tests.support.downloads`")
