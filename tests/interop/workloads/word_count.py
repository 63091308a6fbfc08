"""Kafka Streams' word count, and what it has to say of the lines that it is given.

Without a cache it writes each word's every count: 1, 2, 3 and so on, none twice and none left out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

from tests.interop.clients import confluent
from tests.interop.clients.java import SOURCES
from tests.interop.clients.reading import ConfluentReader
from tests.interop.clients.record import Record, Sending
from tests.interop.conftest import eventually
from tests.interop.workloads.restarted import Restarted
from tests.support import jars
from tests.support.tools import FLAGS

if TYPE_CHECKING:
    from pathlib import Path

LINES_AT_ONCE = 100
WORDS = ("once", "twice", "never", "always", "again")
WORDS_PER_LINE = 4
PARTITIONS = 2
COUNT_SECONDS = 240.0


def lines(chapter: int) -> list[str]:
    """Return lines of which no two chapters have the same words equally often."""
    numbers = range(chapter * LINES_AT_ONCE, (chapter + 1) * LINES_AT_ONCE)
    return [" ".join(WORDS[(n * n + i * chapter) % 5] for i in range(4)) for n in numbers]


class Options(NamedTuple):
    """Options of the application."""

    protocol: str = "classic"
    threads: int = 1
    version: str = jars.STREAMS


class WordCount:
    """The application, its input so far, and its output."""

    def __init__(self, bootstrap: str, directory: Path, options: Options) -> None:
        self._bootstrap = bootstrap
        self._directory = directory
        self._options = options
        self.given: Counter[str] = Counter()
        self.told: dict[bytes, list[int]] = defaultdict(list)
        self._reader = ConfluentReader(self._bootstrap, "words", "reader")
        self.application = self._instance("word-count")
        self.others: list[Restarted] = []

    def start_another(self) -> Restarted:
        """Start one more instance, with a state of its own."""
        another = self._instance(f"word-count-{len(self.others)}")
        self.others.append(another)
        return another

    def _instance(self, name: str) -> Restarted:
        protocol, threads, version = self._options
        classes = jars.compiled(version, SOURCES / "WordCount.java")
        classpath = f"{classes}:{jars.classpath(version)}"
        java = [jars.java_home_tool("java"), *FLAGS, "-cp", classpath, "WordCount"]
        state = str(self._directory / f"{name}-state")
        command = [*java, self._bootstrap, "word-count", state, "lines", "words"]
        command += [protocol, str(threads)]
        return Restarted(name, command, self._directory / f"{name}.out")

    def give(self, chapter: int) -> None:
        written = lines(chapter)
        self.given.update(word for line in written for word in line.split())
        rows = [Record(n % PARTITIONS, None, line.encode()) for n, line in enumerate(written)]
        sending = Sending(style="callback", is_idempotent=True)
        confluent.produce(self._bootstrap, "lines", rows, sending)

    def wait_for(self, words: int) -> None:
        """Wait until it has printed that many counts."""
        eventually(lambda: self._listen() >= words, COUNT_SECONDS)

    def has_counted_once(self) -> bool:
        """Return whether it has printed 1, 2, 3 and so on of each word, in this order."""
        wanted = {word.encode(): list(range(1, n + 1)) for word, n in self.given.items()}
        return self.told == wanted

    def close(self) -> None:
        for instance in (self.application, *self.others):
            instance.kill()
        self._reader.close()

    def _listen(self) -> int:
        self.application.keep_up()
        for message in self._reader.messages(500):
            self.told[message.key()].append(int(message.value()))
        return sum(len(counts) for counts in self.told.values())
