"""The command line of a JVM that runs something out of Apache Kafka's jars."""

from __future__ import annotations

from tests.support import class_archives, jars

HEAP = "-Xmx1g"
SMALL_HEAP = "-Xmx256m"

SHORT_LIVED_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""For programs that end before the second compiler pays: it takes half their CPU."""

SHORT_LIVED_JVM = {"JDK_JAVA_OPTIONS": " ".join(SHORT_LIVED_FLAGS)}
"""The same, as environment."""

LONG_TEST_JVM = {
    "JDK_JAVA_OPTIONS": f"{SHORT_LIVED_JVM['JDK_JAVA_OPTIONS']} -XX:ReservedCodeCacheSize=480m"
}
"""The same for one that serves many tests: 48 MB of code, the first compiler's share, run out."""


def java_command(
    version: str,
    main_class: str,
    *arguments: str,
    heap: str = HEAP,
    flags: tuple[str, ...] = SHORT_LIVED_FLAGS,
) -> list[str]:
    """Return the command line of a JVM with the jars of `version`."""
    java = jars.java_home_tool("java")
    # Not for benchmarks: there Apache's brokers start as Apache's script starts them.
    archive = class_archives.flags(version) if "-server" not in flags else ()
    all_flags = (heap, "-Djava.awt.headless=true", *archive, *flags)
    return [java, *all_flags, "-cp", jars.classpath(version), main_class, *arguments]
