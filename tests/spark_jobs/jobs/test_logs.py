"""Parsing collected lines: formats, times and levels; what no format knows is kept; error rates.

Expected numbers are counted from the files with plain Python.
"""

from __future__ import annotations

import base64
import json
import random
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from spark_jobs.jobs.collect_logs import CollectOptions
from spark_jobs.jobs.logs import NAME, LogsOptions, start, take
from spark_jobs.spark.streams import read_batch, run_to_end
from tests.spark_jobs.data.machine_logs import copy_of_logs, lines_of
from tests.spark_jobs.jobs.test_collect_logs import _collect
from tests.spark_jobs.kafka.consuming import read_topic
from tests.support.brokers.ours import ours

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

ACCESS_LINES = 400
STRANGE = [b"Z\xfcrich is no format", b"\x00\xff", b"{json}", b"2025-13-45 is no date"]


def _access_log(draw: random.Random) -> bytes:
    """Return lines of the combined format: status codes are drawn, a line every 10 seconds."""
    begin = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)
    lines = []
    for number in range(ACCESS_LINES):
        at = (begin + timedelta(seconds=10 * number)).strftime("%d/%b/%Y:%H:%M:%S +0000")
        status = draw.choices([200, 304, 404, 500, 503], [80, 5, 8, 4, 3])[0]
        size = "-" if status == 304 else str(draw.randint(1, 10**10))
        agent = 'say \\"hi\\"' if number % 7 == 0 else "curl/8"
        lines.append(
            f'10.0.0.{number % 9} - - [{at}] "GET /p/{number % 5}?q=1 HTTP/1.1" {status} {size} '
            f'"-" "{agent}"'
        )
    return "\n".join(lines).encode() + b"\n"


class Collected(NamedTuple):
    """Logs in a topic, parsed."""

    options: LogsOptions
    logs: dict[str, Path]
    parsed: dict[str, list[dict[str, Any]]]
    """The lines of each log in order."""


@pytest.fixture(scope="module")
def collected(
    servers: str,
    spark: SparkSession,
    new_name: Callable[[str], str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Collected:
    """Collect the package manager's logs, a broker's own and made ones; parse them."""
    directory = tmp_path_factory.mktemp("logs")
    logs = {path.name: path for path in copy_of_logs(directory)}
    broker = ours(directory / "broker")
    broker.start()
    broker.stop()
    logs["broker.log"] = directory / "broker.log"
    logs["broker.log"].write_bytes(broker.output_path.read_bytes())
    logs["access.log"] = directory / "access.log"
    logs["access.log"].write_bytes(_access_log(random.Random(6)))
    logs["strange.log"] = directory / "strange.log"
    logs["strange.log"].write_bytes(b"\n".join(STRANGE) + b"\n")
    topic = new_name("logs")
    files = tuple(map(str, logs.values()))
    _collect(CollectOptions(bootstrap_servers=servers, topic=topic, files=files, once=True))
    options = LogsOptions(
        bootstrap_servers=servers,
        topic=topic,
        once=True,
        set={"prefix": topic},
        checkpoint=tmp_path_factory.mktemp("checkpoint"),
    )
    rows = run_to_end(start(spark, options))
    lines = sum(len(lines_of(path)) for path in logs.values())
    assert rows == {NAME: lines, f"{NAME}-errors": lines}
    parsed = defaultdict(list)
    for record in read_topic(servers, options.parsed()):
        line = json.loads(record.value or b"")
        parsed[Path(line["log"]).name].append(line)
    return Collected(options, logs, dict(parsed))


def test_each_line_goes_to_one_topic(servers: str, collected: Collected) -> None:
    sources = Counter(
        record.headers["source"]
        for topic in (collected.options.parsed(), collected.options.rejects())
        for record in read_topic(servers, topic)
    )
    lines = sum(len(lines_of(path)) for path in collected.logs.values())
    assert len(sources) == lines
    assert set(sources.values()) == {1}


def test_dpkgs_lines_say_what_was_done_to_which_package(collected: Collected) -> None:
    expected: list[tuple[str | None, ...]] = []
    for line in lines_of(collected.logs["dpkg.log"]):
        words = line.decode().split(" ")
        time = f"{words[0]}T{words[1]}.000000Z"
        if words[2] == "startup":
            expected.append((time, "startup", None, None, None, " ".join(words[3:])))
            continue
        state = words.pop(3) if words[2] == "status" else None
        package, _, architecture = words[3].partition(":")
        expected.append((time, words[2], state, package, architecture or None, None))
    names = ("time", "action", "state", "package", "architecture", "message")
    found = collected.parsed["dpkg.log"]
    assert [tuple(line.get(name) for name in names) for line in found] == expected
    assert {line["format"] for line in found} == {"dpkg"}


def test_versions_before_and_after_are_told(collected: Collected) -> None:
    expected = [
        tuple(None if word == "<none>" else word for word in line.decode().split(" ")[4:])
        for line in lines_of(collected.logs["dpkg.log"])
        if line.split(b" ")[2] in {b"install", b"upgrade"}
    ]
    found = [
        (line.get("old_version"), line.get("new_version"))
        for line in collected.parsed["dpkg.log"]
        if line["action"] in {"install", "upgrade"}
    ]
    assert len(found) > 10
    assert found == expected


def test_apts_history_is_told_line_by_line(collected: Collected) -> None:
    expected = []
    for line in lines_of(collected.logs["history.log"]):
        key, _, rest = line.decode().partition(": ")
        is_list = key in {"Install", "Upgrade", "Remove", "Purge"}
        is_date = key.endswith("-Date")
        time = rest.replace("  ", "T") + ".000000Z" if is_date else None
        packages = rest.count("), ") + 1 if is_list else None
        expected.append((key.lower(), time, packages, None if is_date else rest))
    names = ("action", "time", "packages", "message")
    found = collected.parsed["history.log"]
    assert [tuple(line.get(name) for name in names) for line in found] == expected


def test_apts_terminal_is_all_known(collected: Collected) -> None:
    lines = [line.decode().rstrip("\r") for line in lines_of(collected.logs["term.log"])]
    found = collected.parsed["term.log"]
    assert len(found) == len(lines)
    assert {line["format"] for line in found} == {"apt-term"}
    set_up = [line.split(" ")[2].partition(":")[0] for line in lines if line[:11] == "Setting up "]
    assert [line["package"] for line in found if line.get("action") == "setting up"] == set_up
    began = [line for line in lines if line.startswith("Log started: ")]
    assert [line["time"] for line in found if line.get("action") == "started"] == [
        line.removeprefix("Log started: ").replace("  ", "T") + ".000000Z" for line in began
    ]


def test_the_brokers_own_log_is_known(collected: Collected) -> None:
    lines = [line.decode() for line in lines_of(collected.logs["broker.log"])]
    found = collected.parsed["broker.log"]
    assert len(lines) > 2
    assert {line["format"] for line in found} == {"broker"}
    assert [
        f"{datetime.fromisoformat(line['time']):%Y-%m-%d %H:%M:%S,%f}"[:-3]
        + f" {line['level'].upper()} {line['logger']}: {line['message']}"
        for line in found
    ] == lines


def test_lines_of_no_format_are_kept_as_they_are(servers: str, collected: Collected) -> None:
    found = [json.loads(r.value or b"") for r in read_topic(servers, collected.options.rejects())]
    assert {reject["reason"] for reject in found} == {"unknown-format"}
    raw = [
        base64.b64decode(reject["raw_base64"])
        if reject["raw_base64"] is not None
        else reject["raw"].encode()
        for reject in found
    ]
    assert raw == STRANGE


def test_error_rates_are_what_plain_python_counts(servers: str, collected: Collected) -> None:
    expected: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for name, path in collected.logs.items():
        for line in lines_of(path):
            at, level = _time_and_level(name, line.decode(errors="replace"))
            if at is None:
                continue
            for granularity, minutes in (("5 minutes", 5), ("1 hour", 60)):
                start = at - timedelta(
                    minutes=at.minute % minutes, seconds=at.second, microseconds=at.microsecond
                )
                key = (granularity, f"{start:%Y-%m-%dT%H:%M:%SZ}", name)
                expected[key][level or "none"] += 1
    found = {}
    for record in read_topic(servers, f"{collected.options.topic}.errors"):
        window = json.loads(record.value or b"")
        key = (window["granularity"], window["start"], Path(window["log"]).name)
        assert key not in found
        found[key] = [window[name] for name in ("lines", "errors", "warnings", "error_rate")]
    assert found == {
        key: [
            levels.total(),
            levels["error"],
            levels["warning"],
            round(levels["error"] / levels.total(), 6),
        ]
        for key, levels in expected.items()
    }
    assert sum(window[1] for window in found.values()) > 10


def _time_and_level(name: str, line: str) -> tuple[datetime | None, str | None]:
    if name in {"dpkg.log", "broker.log"}:
        return datetime.fromisoformat(f"{line[:19]}Z"), line.split(" ")[
            2
        ].lower() if name == "broker.log" else None
    if name == "access.log":
        status = int(line.partition('" ')[2].split(" ")[0])
        level = "error" if status >= 500 else "warning" if status >= 400 else "info"
        return datetime.strptime(line.partition("[")[2][:26], "%d/%b/%Y:%H:%M:%S %z"), level
    for begin in ("Start-Date: ", "End-Date: ", "Log started: ", "Log ended: "):
        if line.startswith(begin):
            at = line.removeprefix(begin).replace("  ", "T") + "Z"
            return datetime.fromisoformat(at), None
    return None, None


@pytest.mark.slow
def test_a_range_of_lines_can_be_taken_as_a_batch(
    spark: SparkSession, servers: str, collected: Collected, new_name: Callable[[str], str]
) -> None:
    name = new_name("taken")
    options = collected.options.model_copy(
        update={
            "parsed_topic": f"{name}.parsed",
            "rejects_topic": f"{name}.rejected",
            "set": {"prefix": name},
        }
    )
    take(spark, read_batch(spark, options, [options.topic]), options)
    for ours_, theirs in (
        (options.parsed(), collected.options.parsed()),
        (options.rejects(), collected.options.rejects()),
        (f"{name}.errors", f"{collected.options.topic}.errors"),
    ):
        found, wanted = (Counter(r.value for r in read_topic(servers, t)) for t in (ours_, theirs))
        assert found == wanted
