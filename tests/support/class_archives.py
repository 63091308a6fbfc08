"""Archives of the classes of Apache Kafka's brokers, with which a JVM starts in half the time.

An archive (JDK, class data sharing) is made by a broker as it ends, once, beside the jars. Tools
and clients of the same version share it, for their classes are among the broker's, as long as what
stands first on their class path is what stood on its: `jars.classpath(version)`. A JVM that cannot
use one, after an update of Java for instance, starts as it does without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.support import jars

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.brokers.broker_process import BrokerProcess

SILENT: Final = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
"""For class paths that do not begin as the broker's, and classes that are too old."""


def path(version: str) -> Path:
    """Return where the archive of a version lies; it is empty where Java can make none."""
    return jars.CACHE / version / "classes.jsa"


def is_made(version: str) -> bool:
    """Say whether there is one of the jars that are there now, or can be none."""
    archive = path(version)
    made_ns = archive.stat().st_mtime_ns if archive.is_file() else 0
    return made_ns > jars.resolved_stamp(version).stat().st_mtime_ns


def flags(version: str) -> tuple[str, ...]:
    """Return the JVM flags for the archive of a version; none without one."""
    archive = path(version)
    if not (archive.is_file() and archive.stat().st_size):
        return ()
    return (f"-XX:SharedArchiveFile={archive}", *SILENT)


def make(version: str, broker: BrokerProcess) -> None:
    """Make the archive of a version, by a broker that was not started yet; it ends then."""
    archive = path(version)
    archive.unlink(missing_ok=True)
    unfinished = archive.with_suffix(".unfinished")
    broker.command[1:1] = [f"-XX:ArchiveClassesAtExit={unfinished}", *SILENT]
    broker.start()
    broker.stop()
    if unfinished.is_file():
        unfinished.rename(archive)
    else:
        archive.touch()
