"""Formats of lines: what each says, and how a mistake in a definition is told."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from spark_jobs.definitions.definition import load_definition
from spark_jobs.definitions.log_formats import LogSection, parsed_lines
from spark_jobs.errors import BadOptionError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

LINES: list[tuple[str, str, dict[str, object]]] = [
    (
        "/var/log/nginx/access.log",
        '::1 - bob [29/Feb/2024:23:59:59 +0100] "POST /a%20b HTTP/2.0" 201 0 "http://x/" "M/5.0"',
        {
            "format": "access",
            "time": "2024-02-29T22:59:59.000000Z",
            "level": "info",
            "client": "::1",
            "user": "bob",
            "method": "POST",
            "path": "/a%20b",
            "protocol": "HTTP/2.0",
            "status": 201,
            "bytes": 0,
            "referer": "http://x/",
            "agent": "M/5.0",
        },
    ),
    (
        "/access.log",
        '1.2.3.4 - - [01/Jan/2026:00:00:00 +0000] "\\x16\\x03\\x01\\"" 400 -',
        {
            "format": "access",
            "time": "2026-01-01T00:00:00.000000Z",
            "level": "warning",
            "client": "1.2.3.4",
            "message": '\\x16\\x03\\x01\\"',
            "status": 400,
        },
    ),
    (
        "/syslog",
        "<165>1 2003-10-11T22:14:15.003Z host.example evntslog 42 ID47 "
        r'[a@32473 iut="3" source="Appli\]cation"][x y="z"] ' + "\ufeffAn event",
        {
            "format": "syslog",
            "time": "2003-10-11T22:14:15.003000Z",
            "level": "info",
            "host": "host.example",
            "program": "evntslog",
            "pid": 42,
            "facility": 20,
            "severity": 5,
            "message_id": "ID47",
            "structured": r'[a@32473 iut="3" source="Appli\]cation"][x y="z"]',
            "message": "An event",
        },
    ),
    (
        "/syslog",
        "<34>1 2026-01-01T01:00:00.000001+02:00 - - - - -",
        {
            "format": "syslog",
            "time": "2025-12-31T23:00:00.000001Z",
            "level": "critical",
            "facility": 4,
            "severity": 2,
        },
    ),
    (
        "/syslog",
        "<11>Feb 29 02:14:15 mymachine su[123]: 'su root' failed",
        {
            "format": "syslog",
            "time": "2024-02-29T02:14:15.000000Z",
            "level": "error",
            "host": "mymachine",
            "program": "su",
            "pid": 123,
            "facility": 1,
            "severity": 3,
            "message": "'su root' failed",
        },
    ),
    (
        "/syslog",
        "Dec  5 10:00:00 h kernel: warning: slow",
        {
            "format": "syslog",
            "time": "2025-12-05T10:00:00.000000Z",
            "level": "warning",
            "host": "h",
            "program": "kernel",
            "message": "warning: slow",
        },
    ),
    (
        "/syslog",
        "2026-06-01T10:00:00.5+00:00 h cron[7]: (root) CMD",
        {
            "format": "syslog",
            "time": "2026-06-01T10:00:00.500000Z",
            "host": "h",
            "program": "cron",
            "pid": 7,
            "message": "(root) CMD",
        },
    ),
    (
        "/app.log",
        "2026-06-01 10:00:00,250 CRITICAL app.db: gone\r",
        {
            "format": "python",
            "time": "2026-06-01T10:00:00.250000Z",
            "level": "critical",
            "logger": "app.db",
            "message": "gone",
        },
    ),
    (
        "/app.log",
        "2026-06-01 10:00:00,250 - app - WARNING - low",
        {
            "format": "python",
            "time": "2026-06-01T10:00:00.250000Z",
            "level": "warning",
            "logger": "app",
            "message": "low",
        },
    ),
    (
        "/app.log",
        "ERROR:root:no time",
        {"format": "python", "level": "error", "logger": "root", "message": "no time"},
    ),
    (
        "/app.log",
        "2046-06-01 10:00:00,250 INFO app: from the future",
        {"format": "python", "level": "info", "logger": "app", "message": "from the future"},
    ),
    (
        "/apt/term.log",
        "Unpacking libc6:amd64 (2.36-9) over (2.36-8) ...\r",
        {
            "format": "apt-term",
            "action": "unpacking",
            "package": "libc6",
            "architecture": "amd64",
            "old_version": "2.36-8",
            "new_version": "2.36-9",
        },
    ),
    (
        "/apt/term.log",
        "dpkg: error processing package x (--configure):",
        {
            "format": "apt-term",
            "level": "error",
            "message": "dpkg: error processing package x (--configure):",
        },
    ),
    (
        "/apt/history.log",
        "Error: Sub-process /usr/bin/dpkg returned an error code (1)",
        {
            "format": "apt-history",
            "action": "error",
            "level": "error",
            "message": "Sub-process /usr/bin/dpkg returned an error code (1)",
        },
    ),
]


def test_formats_are_told_apart_and_typed(spark: SparkSession) -> None:
    rows = [
        (f"web:{path}".encode(), line.encode(), "t", 0, number)
        for number, (path, line, _) in enumerate(LINES)
    ]
    schema = "key binary, value binary, topic string, partition int, offset bigint"
    records = spark.createDataFrame(rows, schema)
    records = records.selectExpr("*", "timestamp'2026-11-21T12:00:00Z' AS timestamp")
    found = parsed_lines(records, load_definition("logs")).orderBy("offset").select("output")
    lines = [json.loads(row["output"]) for row in found.collect()]
    for (path, line, wanted), parsed in zip(LINES, lines, strict=True):
        assert parsed.pop("log") == f"web:{path}"
        assert parsed.pop("collected") == "2026-11-21T12:00:00.000000Z"
        assert parsed == wanted, line


@pytest.mark.slow
def test_times_without_a_zone_are_of_the_one_that_is_given(spark: SparkSession) -> None:
    line = "2026-07-01 12:00:00,000 INFO app: x"
    definition = load_definition("logs", {"zone": "Europe/Zurich"})
    records = spark.createDataFrame(
        [(b"w:/a", line.encode(), "t", 0, 0)],
        "key binary, value binary, topic string, partition int, offset bigint",
    ).selectExpr("*", "timestamp'2026-11-21T12:00:00Z' AS timestamp")
    output = parsed_lines(records, definition).select("output").collect()[0]["output"]
    assert json.loads(output)["time"] == "2026-07-01T10:00:00.000000Z"


@pytest.mark.parametrize(
    ("changed", "to", "words"),
    [
        ("(?<logger>", "(", "logs.formats.0: Value error, a group without a name"),
        ("(?<logger>", "(?<logger", "logs.formats.0: Value error, not a regular expression"),
        ("(?<logger>", "(?<key>", "logs.formats.0: no group or column may be called 'key'"),
        ("pattern", "patern", "logs.formats.0.pattern: is missing"),
    ],
)
def test_a_wrong_pattern_is_named(changed: str, to: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    text = (
        '[record]\nevent_time = "now()"\nfields.logger = { type = "text" }\n'
        "[[logs.formats]]\nname = \"mine\"\npattern = '(?<logger>x)'\n"
    )
    path.write_text(text.replace(changed, to))
    with pytest.raises(BadOptionError) as refused:
        load_definition(str(path)).section("logs", LogSection)
    assert words.replace("Value error, ", "") in str(refused.value)


def test_wrong_sql_of_a_format_is_named(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        '[record]\nevent_time = "now()"\nfields.logger = { type = "text" }\n'
        '[[logs.formats]]\nname = "mine"\npattern = \'(?<logger>x)\'\nlevel = "lower(word)"\n'
    )
    records = spark.createDataFrame([], "key binary, value binary, timestamp timestamp")
    with pytest.raises(BadOptionError, match=r"mine\.toml: logs\.formats\.0\.level: .*word"):
        parsed_lines(records, load_definition(str(path)))
