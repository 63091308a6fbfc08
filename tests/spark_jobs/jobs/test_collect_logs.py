"""Collecting logs into a topic: each line once, in order, through kills and an absent broker."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spark_jobs.errors import EXIT_BAD_OPTION, JobError
from spark_jobs.jobs.collect_logs import CollectOptions, Collector
from spark_jobs.log_collection.log_files import files_of
from tests.spark_jobs.data.machine_logs import copy_of_logs, lines_of
from tests.spark_jobs.kafka.consuming import read_committed
from tests.support.brokers.ours import ours
from tests.support.jars import REPOSITORY
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from spark_jobs.log_collection.log_files import LogFile

COLLECTOR = "here"
TIMEOUT_SECONDS = 240.0


def committed_lines(servers: str, topic: str) -> dict[str, list[bytes]]:
    """Return the lines of each log, by its key, that committed transactions wrote."""
    lines: defaultdict[str, list[bytes]] = defaultdict(list)
    for read in read_committed(servers, topic):
        lines[(read.key or b"").decode()].append(read.value or b"")
    return dict(lines)


def _collect(options: CollectOptions) -> int:
    return Collector(options).run(threading.Event())


def _options(servers: str, topic: str, *files: object, **more: Any) -> CollectOptions:
    return CollectOptions(
        bootstrap_servers=servers,
        topic=topic,
        files=tuple(map(str, files)),
        collector=COLLECTOR,
        once=True,
        **more,
    )


def test_the_machines_logs_arrive_as_they_are_and_only_once(
    servers: str, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    logs = copy_of_logs(tmp_path)
    options = _options(servers, new_name("logs"), *logs, transaction_lines=1000)
    wanted = {f"{COLLECTOR}:{path}": lines_of(path) for path in logs}
    assert _collect(options) == sum(map(len, wanted.values()))
    assert committed_lines(servers, options.topic) == wanted
    assert _collect(options) == 0
    with logs[0].open("ab") as file:
        file.write(b"one more\n")
    assert _collect(options) == 1
    wanted[f"{COLLECTOR}:{logs[0]}"].append(b"one more")
    assert committed_lines(servers, options.topic) == wanted


def test_collectors_with_other_names_do_not_disturb_each_other(
    servers: str, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(b"one\n")
    options = _options(servers, new_name("logs"), log)
    other = options.model_copy(update={"collector": "there"})
    assert (_collect(options), _collect(other), _collect(options)) == (1, 1, 0)
    assert committed_lines(servers, options.topic) == {
        f"{COLLECTOR}:{log}": [b"one"],
        f"there:{log}": [b"one"],
    }


def test_a_log_that_may_not_be_read_is_named_and_the_others_are_collected(
    servers: str, tmp_path: Path, new_name: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = tmp_path / "one.log", tmp_path / "two.log"
    one.write_bytes(b"1\n")
    two.write_bytes(b"2\n")
    opened = Path.open

    def refuse(path: Path, *arguments: Any, **more: Any) -> Any:
        if path == one:  # whoever runs tests as root may read everything
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *arguments, **more)

    monkeypatch.setattr(Path, "open", refuse)
    options = _options(servers, new_name("logs"), tmp_path / "*.log")
    with pytest.raises(JobError, match=rf"^not collected: {one}: Permission denied$"):
        _collect(options)
    assert committed_lines(servers, options.topic) == {f"{COLLECTOR}:{two}": [b"2"]}


def test_a_pattern_that_matches_nothing_is_named(
    servers: str, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    with pytest.raises(JobError, match=r"^no file matches --files .*/none\*$"):
        _collect(_options(servers, new_name("logs"), tmp_path / "none*"))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"client": {"no.such": "1"}}, r'^No such configuration property: "no.such": --client '),
        ({"max_line_bytes": 3_000_000}, r"^.*Message size too large: lower --max-line-bytes"),
    ],
)
def test_what_trying_again_does_not_mend_ends_a_running_collector(
    more: dict[str, Any], words: str, servers: str, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(b"x" * 2_000_000 + b"\n")
    options = _options(servers, new_name("logs"), log, **more).model_copy(update={"once": False})
    stop = threading.Event()
    late = threading.Timer(TIMEOUT_SECONDS / 6, stop.set)
    late.start()
    try:
        with pytest.raises(JobError, match=words):
            Collector(options).run(stop)
    finally:
        late.cancel()


def _command(options: CollectOptions, *more: str) -> list[str]:
    return [
        *(sys.executable, "-m", "spark_jobs", "collect_logs"),
        *("--bootstrap-servers", options.bootstrap_servers, "--topic", options.topic),
        *("--collector", options.name(), "--files", *options.files),
        *("--poll-seconds", "0.05", "--settle-seconds", "0.3", "--transaction-lines", "50", *more),
    ]


def _start(options: CollectOptions, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        _command(options, *more),
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.process
def test_no_files_are_one_line_and_exit_code_two() -> None:
    outcome = subprocess.run(
        [sys.executable, "-m", "spark_jobs", "collect_logs"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.returncode == EXIT_BAD_OPTION
    assert outcome.stderr == "error: --files: name the log files to follow, or patterns of them\n"


def test_the_earlier_of_two_collectors_of_one_name_is_shut_out(
    servers: str, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(b"one\n")
    options = _options(servers, new_name("logs"), log)
    first = _start(options)
    try:
        assert wait_until(lambda: _has(options, 1), TIMEOUT_SECONDS)
        assert _collect(options) == 0
        with log.open("ab") as file:
            file.write(b"two\n")
        _, said = first.communicate(timeout=TIMEOUT_SECONDS)
    finally:
        first.kill()
        first.wait()
    assert first.returncode == 1
    assert said.startswith(f"error: the collector '{COLLECTOR}' cannot go on: ")
    assert _collect(options) == 1
    assert committed_lines(servers, options.topic) == {f"{COLLECTOR}:{log}": [b"one", b"two"]}


def _has(options: CollectOptions, lines: int) -> bool:
    try:
        found = committed_lines(options.bootstrap_servers, options.topic)
    except (AssertionError, KeyError):
        return False
    return sum(map(len, found.values())) >= lines


def _pause(seconds: float) -> None:
    threading.Event().wait(seconds)


def _rotate(log: Path, mode: str) -> None:
    for number in range(50, 0, -1):
        old = log.with_name(f"{log.name}.{number}")
        if old.exists():
            old.rename(log.with_name(f"{log.name}.{number + 1}"))
    newest = log.with_name(f"{log.name}.1")
    if mode == "copytruncate":
        newest.write_bytes(log.read_bytes())
        os.truncate(log, 0)
    else:
        log.rename(newest)
        log.touch()


def test_a_log_that_is_rotated_under_a_collector_that_looks_once_is_collected(
    servers: str, tmp_path: Path, new_name: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a log, when it is rotated after its files were listed, then they are listed again."""
    log = tmp_path / "a.log"
    log.write_bytes(b"one\n")

    def rotate_behind(listed: Path) -> list[LogFile]:
        files = files_of(listed)
        if len(files) == 1:
            _rotate(log, "rename")
        return files

    monkeypatch.setattr("spark_jobs.log_collection.tail.files_of", rotate_behind)
    options = _options(servers, new_name("logs"), log, poll_seconds=0.01)
    assert _collect(options) == 1
    assert committed_lines(servers, options.topic) == {f"{COLLECTOR}:{log}": [b"one"]}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_kills_at_any_moment_neither_lose_nor_double_a_line(
    seed: int, servers: str, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    """Given logs that grow and are rotated, when the collector is killed again and again."""
    draw = random.Random(seed)
    logs = {tmp_path / "a.log": "rename", tmp_path / "b.log": "copytruncate"}
    written = {f"{COLLECTOR}:{log}": list[bytes]() for log in logs}
    options = _options(servers, new_name("logs"), *logs)
    for log in logs:
        log.touch()
    for _ in range(8):
        collector = _start(options)
        until = time.monotonic() + draw.uniform(0.5, 2.5)
        while time.monotonic() < until:
            log = draw.choice(list(logs))
            lines = written[f"{COLLECTOR}:{log}"]
            new = [b"%d %s" % (len(lines) + i, b"." * draw.randint(0, 80)) for i in range(300)]
            with log.open("ab") as file:
                file.writelines(line + b"\n" for line in new)
            lines += new
            if draw.random() < 0.1:
                _rotate(log, logs[log])
            _pause(0.02)
        collector.send_signal(signal.SIGKILL)
        collector.communicate()
    _collect(options)
    assert committed_lines(servers, options.topic) == written
    assert _collect(options) == 0


@pytest.mark.slow
def test_a_broker_that_is_killed_is_waited_for(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(b"one\n")
    broker = ours(tmp_path / "broker")
    broker.start()
    options = _options(broker.bootstrap, "logs", log)
    collector = _start(options)
    written = [b"one"]
    try:
        for number in range(3):
            assert wait_until(lambda: _has(options, len(written)), TIMEOUT_SECONDS)
            broker.kill()
            with log.open("ab") as file:
                for line in range(200):
                    written.append(b"%d/%d" % (number, line))
                    file.write(written[-1] + b"\n")
            _pause(1)
            broker.start()
        assert wait_until(lambda: _has(options, len(written)), TIMEOUT_SECONDS)
        collector.send_signal(signal.SIGTERM)
        said, _ = collector.communicate(timeout=TIMEOUT_SECONDS)
        found = committed_lines(broker.bootstrap, "logs")
    finally:
        collector.kill()
        collector.wait()
        broker.stop()
    assert collector.returncode == 0
    assert said == f"collect_logs: {len(written)} lines collected into logs\n"
    assert found == {f"{COLLECTOR}:{log}": written}
