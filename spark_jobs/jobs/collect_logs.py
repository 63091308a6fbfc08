"""Job: tail log files, and produce each line to a topic, exactly once.

    /var/log/dpkg.log, .1, .2.gz ...  ->  logs             a record for each line, in order
                                          logs.positions   how far each log was read; compacted

A record's key is `COLLECTOR:PATH` of the log, whatever rotation called the file meanwhile; its
value are the line's bytes, as they are. Headers tell the `file` and the line's `offset` in it; a
line that is too long comes in pieces, all but the last with the header `continued`. Empty lines
are left out.

Lines and positions are written in one transaction, in the name of the collector. So a collector
that is killed, at any moment, leaves nothing half done: the next one of its name ends what was
open, reads how far it came, and goes on there. Of two at the same time the earlier is shut out.
Readers want `isolation.level=read_committed`; `logs` and other jobs here set it or can be told to.

What was rotated before the first start is collected too. `log_files` says how files of a log are
told, `log_positions` how a file is known again, `tail` what a line is.
"""

from __future__ import annotations

import logging
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

if not __package__:  # given as a file: let the imports below find the package
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import spark_jobs.dependency_check  # noqa: F401 - first of all: it says what is not installed

# isort: split
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pydantic import Field, PositiveFloat, PositiveInt
from rich.console import Console

from spark_jobs.errors import BadOptionError, JobError, exit_code_of
from spark_jobs.kafka.client_failures import HINTS
from spark_jobs.kafka.reachable import check_reachable
from spark_jobs.log_collection.log_files import logs_of
from spark_jobs.log_collection.log_position_topic import TOPIC_SETTINGS
from spark_jobs.log_collection.log_shipment import LINE_SETTINGS, Shipment
from spark_jobs.log_collection.tail import TailedLog, Tailing
from spark_jobs.options import KafkaOptions, TopicName, parse_options
from spark_jobs.orderly_stop import stop_event
from spark_jobs.paths import require_file

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence

NAME = "collect_logs"
TIMEOUT_SECONDS = 15.0
ATTEMPTS_ONCE = 4
"""How often `--once` tries; without it the collector tries until it is stopped."""

LONGEST_PAUSE_SECONDS = 30.0
_NEVER_BETTER = {
    **HINTS,
    KafkaError.MSG_SIZE_TOO_LARGE: (
        "lower --max-line-bytes, or raise max.message.bytes of the topic and, with --client, "
        "message.max.bytes"
    ),
}
"""What to tell a person, by errors that trying again does not mend."""

LOOKS_ONCE = 10
"""How often `--once` looks at logs that are rotated while it does."""


class CollectOptions(KafkaOptions):
    """Options of the collecting job."""

    files: tuple[str, ...] = ()
    """log files to tail, or quoted patterns: '/var/log/*.log'; ** matches any directories"""

    topic: TopicName = "logs"
    """topic to produce to; created if it does not exist"""

    positions_topic: TopicName | None = None
    """compacted topic for the position in each log; TOPIC.positions if not given"""

    partitions: PositiveInt = 2
    """partitions of the topic, if it is created"""

    collector: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]*$", max_length=100)] = ""
    """name of this collector, unique; the machine's name if not given"""

    once: bool = False
    """collect what is there now, then end; without it, run until stopped"""

    poll_seconds: PositiveFloat = 1.0
    """how often to look for new lines"""

    settle_seconds: Annotated[float, Field(ge=0)] = 5.0
    """how long a rotated file must be unchanged before the next file is read"""

    max_line_bytes: Annotated[int, Field(ge=1000)] = 900_000
    """longer lines are split"""

    transaction_lines: PositiveInt = 10_000
    """maximum number of lines in a transaction"""

    metrics: Path | None = None
    """file to append a line of JSON to per transaction"""

    client: dict[str, str] = Field(default={})
    """a setting of librdkafka, e.g. security.protocol=SSL; may be repeated"""

    def positions(self) -> str:
        """Return the topic of positions."""
        return self.positions_topic or f"{self.topic}.positions"

    def name(self) -> str:
        """Return what this collector is called."""
        return self.collector or socket.gethostname()

    def client_settings(self) -> dict[str, Any]:
        """Return the settings that every client of the job starts from."""
        quiet = {"log_level": 0, "logger": logging.getLogger("librdkafka")}
        return {**quiet, **self.client, "bootstrap.servers": self.bootstrap_servers}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; return the process's exit code."""
    return exit_code_of(lambda: _run(argv))


def _run(argv: Sequence[str] | None) -> int:
    options = parse_options(CollectOptions, argv, NAME, __doc__)
    if not options.files:
        raise BadOptionError("--files: name the log files to follow, or patterns of them")
    with stop_event() as stop:
        collected = Collector(options).run(stop)
    print(f"{NAME}: {collected:,} lines collected into {options.topic}")
    return 0


class Collector:
    """Follows the logs that the options name."""

    def __init__(self, options: CollectOptions) -> None:
        check_reachable(options.bootstrap_servers)
        if options.metrics is not None:
            require_file("--metrics", options.metrics)
        self._options = options
        self._console = Console(stderr=True)
        self._lines = 0
        self._logs: dict[Path, TailedLog] = {}
        self._unreadable: dict[Path, str] = {}
        self._rotated: set[Path] = set()
        """Logs that were not read to their end, since a file got another name meanwhile."""
        self._tailing = Tailing(
            settle_seconds=0 if options.once else options.settle_seconds,
            most_line_bytes=options.max_line_bytes,
            tell=lambda words: print(words, file=sys.stderr),
        )

    def run(self, stop: threading.Event) -> int:
        """Collect until told to stop or, with `once`, all that is there; return lines produced.

        Raises `JobError` when another collector of the name has begun, when a log cannot be read
        with `once`, when the broker is not there for `ATTEMPTS_ONCE`, or for `_NEVER_BETTER`.
        """
        failures = 0
        with self._console.status("") as status:
            self._show = status.update
            while not stop.is_set():
                before = self._lines
                try:
                    self._collect(stop)
                    break
                except KafkaException as error:
                    failures = 1 if self._lines > before else failures + 1
                    self._take_failure(error, failures)
                    stop.wait(min(2.0**failures, LONGEST_PAUSE_SECONDS))
        left = dict.fromkeys(self._rotated, "rotated all the time") | self._unreadable
        if self._options.once and left:
            words = "; ".join(f"{path}: {reason}" for path, reason in left.items())
            raise JobError(f"not collected: {words}")
        return self._lines

    def _take_failure(self, error: KafkaException, failures: int) -> None:
        reason = error.args[0]
        if reason.fatal():
            raise JobError(
                f"the collector '{self._options.name()}' cannot go on: {reason.str()}. If another "
                "one of that name runs, give each its own --collector"
            ) from error
        hint = _NEVER_BETTER.get(reason.code())
        if hint is not None:
            raise JobError(f"{reason.str()}: {hint}") from error
        if self._options.once and failures == ATTEMPTS_ONCE:
            raise JobError(f"{self._options.bootstrap_servers}: {reason.str()}") from error
        print(f"{reason.str()}; trying again", file=sys.stderr)

    def _collect(self, stop: threading.Event) -> None:
        """Collect as long as nothing fails."""
        options = self._options
        settings = options.client_settings()
        partitions = prepare_topics(options, settings)
        shipment = Shipment(options, settings, partitions)
        try:
            self._logs = {}
            looks = 0
            while not stop.is_set():
                self._look(shipment, stop)
                self._show(f"{self._lines:,} lines of {len(self._logs):,} logs")
                looks += 1
                if options.once and (not self._rotated or looks == LOOKS_ONCE):
                    return
                stop.wait(options.poll_seconds)
        finally:
            for log in self._logs.values():
                log.close()
            shipment.close()

    def _look(self, shipment: Shipment, stop: threading.Event) -> None:
        """Take in what all logs hold now."""
        paths = logs_of(self._options.files)
        if self._options.once and not paths:
            raise JobError(f"no file matches --files {' '.join(self._options.files)}")
        for path in paths:
            if path not in self._logs:
                known = shipment.positions(path)
                self._logs[path] = TailedLog(path, known, self._tailing)
        for path, log in self._logs.items():
            if not stop.is_set():
                self._read(path, log, shipment, stop)
        self._lines += shipment.commit(self._logs)

    def _read(self, path: Path, log: TailedLog, shipment: Shipment, stop: threading.Event) -> None:
        now = time.time()  # noqa: TID251 - beside the times of files
        try:
            for line in log.lines(now):
                shipment.add(path, line)
                if shipment.lines >= self._options.transaction_lines:
                    self._lines += shipment.commit(self._logs)
                    self._show(f"{self._lines:,} lines of {len(self._logs):,} logs")
                    if stop.is_set():
                        return
        except FileNotFoundError:  # renamed since the directory was read: the next look finds it
            self._rotated.add(path)
            return
        except OSError as error:
            if path not in self._unreadable:
                print(f"{path}: {error.strerror or error}: not collected", file=sys.stderr)
            self._unreadable[path] = error.strerror or str(error)
        else:
            self._unreadable.pop(path, None)
        self._rotated.discard(path)


def prepare_topics(options: CollectOptions, settings: dict[str, Any]) -> int:
    """Create the topics that are not there; return the partitions of that of the lines."""
    admin = AdminClient(settings)
    there = admin.list_topics(timeout=TIMEOUT_SECONDS).topics
    wanted = {
        options.topic: (options.partitions, LINE_SETTINGS),
        options.positions(): (1, TOPIC_SETTINGS),
    }
    missing = [
        NewTopic(topic, num_partitions=partitions, config=configs)
        for topic, (partitions, configs) in wanted.items()
        if topic not in there
    ]
    if missing:
        for made in admin.create_topics(missing, operation_timeout=TIMEOUT_SECONDS).values():
            made.result()
    return len(there[options.topic].partitions) if options.topic in there else options.partitions


if __name__ == "__main__":
    sys.exit(main())
