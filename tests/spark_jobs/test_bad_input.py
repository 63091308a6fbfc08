"""Records of every bad kind: each is kept in the rejects with its place and its reason.

One run of the routing job takes in all of them. Every job begins with the same parsing and has
the same rejects, so what is shown here of one holds for all.
"""

from __future__ import annotations

import base64
import calendar
import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from spark_jobs.jobs.route import NAME, RouteOptions, start
from spark_jobs.spark.streams import run_to_end
from tests.spark_jobs.kafka.consuming import Read, read_topic
from tests.spark_jobs.kafka.producing import Record, create_topic, produce_records

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

DEFINITION = """
[parameters]
prefix = ""
[record]
event_time = "try_to_timestamp(at)"
latest = "2 days"
max_bytes = 1_000_000
[record.fields]
at = { type = "text" }
size = { type = "integer", low = 0, high = 9, nullable = true }
ratio = { type = "number", low = -1.5 }
ok = { type = "boolean" }
note = { type = "text", optional = true, nullable = true }
[record.columns]
share = "size / (size - size)"
[[record.rules]]
reason = "shouting"
when = "note = 'HELP'"
detail = "note"
[route]
leave_out = ["share"]
also.twice = "concat(note, note)"
[[route.routes]]
name = "small"
topic = "${prefix}.small"
when = "size < 5"
[[route.routes]]
name = "odd"
topic = "${prefix}.odd"
when = "size % 2 = 1"
key = "note"
"""

TOPIC_BYTES = 8_000_000
USUAL_BYTES = 1_048_588
"""What topics take by default, and so the rejects' topic does."""

GOOD: dict[str, Any] = {"at": "2013-03-01T10:00:00Z", "size": 1, "ratio": 0.5, "ok": True}


def _good(**changes: object) -> bytes:
    return json.dumps(GOOD | {"note": "n"} | changes).encode()


def _text(**changes: str) -> bytes:
    """Return a good record in which values are the given texts, as they are."""
    text = _good(**dict.fromkeys(changes, "@"))
    for value in changes.values():
        text = text.replace(b'"@"', value.encode(), 1)
    return text


def _without(key: str) -> bytes:
    return json.dumps({name: value for name, value in GOOD.items() if name != key}).encode()


def _ahead(days: int) -> bytes:
    """Called when tests are collected: the job may take the record in hours later."""
    now = calendar.timegm(time.gmtime())
    return _good(at=datetime.fromtimestamp(now + days * 86_400, UTC).isoformat())


@dataclass(frozen=True, slots=True)
class Case:
    """A record, and what must become of it."""

    name: str
    value: bytes | None
    outcome: str
    """The reason it is rejected for, or its route."""

    key: bytes | None = b"key"


NOT_JSON = {
    "cut": _good()[:-1],
    "html": b"<html>502 Bad Gateway</html>",
    "two": _good() * 2,
    "spaces": b" \n",
    "apostrophes": b"{'size': 1}",
    "comment": b"/* x */" + _good(),
    "comma too many": _good()[:-1] + b",}",
    "no-break space": b"\xc2\xa0" + _good(),
    "byte order mark": b"\xef\xbb\xbf" + _good(),
    "raw control character": _text(note='"\x01"'),
    "infinity": _text(ratio="Infinity"),
    "the same key twice": b'{"size":1,"size":2}',
    "open brackets": b"[" * 100_000,
    "nested too deep": _text(note="[" * 5_000 + "]" * 5_000),
    "objects nested too deep": b'{"size":' * 20_000 + b"1" + b"}" * 20_000,
}
OTHERS = (
    Case("no value", None, "empty"),
    Case("an empty value", b"", "empty"),
    Case("neither key nor value", None, "empty", None),
    Case("UTF-16", _good().decode().encode("utf-16"), "not-utf-8"),
    Case("Latin-1", _good(note="@").replace(b"@", b"Z\xfcrich"), "not-utf-8"),
    Case("a list", b"[1]", "not-an-object"),
    Case("a text", b'"{}"', "not-an-object"),
    Case("null", b"null", "not-an-object"),
    Case("an empty object", b"{}", "missing-key"),
    Case("without a key", _without("ratio"), "missing-key"),
    Case("an unknown key", _good(colour="red"), "unknown-key"),
    Case("a key without a name", _good(**{"": 1}), "unknown-key"),
    Case("a key in capitals", _good(SIZE=1), "unknown-key"),
    Case("a null that may not be", _good(ok=None), "null-value"),
    Case("a number as text", _good(size="1"), "wrong-type"),
    Case("a fraction", _good(size=1.5), "wrong-type"),
    Case("beyond 64 bits", _good(size=2**64), "wrong-type"),
    Case("a list inside", _good(ratio=[0.5]), "wrong-type"),
    Case("a number as boolean", _good(ok=1), "wrong-type"),
    Case("too small", _good(size=-1), "impossible-number"),
    Case("too small a fraction", _good(ratio=-1.6), "impossible-number"),
    Case("beyond a double", _text(ratio="1E400"), "impossible-number"),
    Case("a rule of the definition", _good(note="HELP"), "shouting"),
    Case("no time", _good(at="soon"), "impossible-time"),
    Case("30 February", _good(at="2013-02-30T10:00:00Z"), "impossible-time"),
    Case("beyond all times", _good(at="+294248-01-01T00:00:00Z"), "impossible-time"),
    Case("a clock three days ahead", _ahead(3), "clock-skew"),
    Case("the end of all times", _good(at="+294246-12-31T00:00:00Z"), "impossible-time"),
    Case("no route", _good(size=8), "no-route"),
    Case("NULL for all routes", _good(size=None), "no-route"),
    Case("longer than the limit", _good(note="x" * 1_000_000), "too-large"),
    Case("much longer", _good(note="x" * 5_000_000), "too-large"),
    Case("a megabyte that is longer as JSON", b"\x01" * 1_000_000, "not-json"),
    Case("a megabyte of bad bytes", b"\xff" * 1_000_000, "not-utf-8"),
    Case("a megabyte of wide characters", "\U0001f600".encode() * 250_000, "not-json"),
    Case("50,000 unknown keys", _good(**dict.fromkeys(map(str, range(50_000)))), "unknown-key"),
    Case("a long unknown key", _good(**{"k" * 40_000: 1}), "unknown-key"),
    Case("a key of a megabyte", _good(**{"k" * 900_000: 1}), "not-json"),
    Case("an output too large", _good(note="x" * 600_000), "too-large-output"),
    Case("a key too large", _good(), "too-large-output", b"k" * 3_000_000),
    Case("a key too large, and bad", b"{", "not-json", b"k" * 3_000_000),
)
FINE = (
    Case("good", _good(), "small"),
    Case("good without a key", _good(size=7), "odd", None),
    Case("a key that is not UTF-8", _good(), "small", b"\xff\x00"),
    Case("an optional key that is not there", _without("nothing"), "small"),
    Case("a null that may be", _good(note=None), "small"),
    Case("spaces around", b" \t\r\n" + _good() + b"\r\n ", "small"),
    Case("an integer for a number", _good(ratio=3), "small"),
    Case("an exponent", _text(ratio="1E2"), "small"),
    Case("a character that UTF-8 lacks", _text(note='"\\ud800"'), "small"),
    Case("a character of nothing", _good(note="a\0b"), "small"),
    Case("a clock a day ahead", _ahead(1), "small"),
    Case("as long as may be", _good(note="x" * 300_000), "small"),
)
CASES = (*(Case(name, value, "not-json") for name, value in NOT_JSON.items()), *OTHERS, *FINE)


@dataclass(frozen=True, slots=True)
class Run:
    """What one run made of all cases."""

    topic: str
    outputs: dict[int, list[tuple[str, Read]]]
    """By offset in the source: what names it as its source, with the route."""

    def only(self, case: Case) -> tuple[str, Read]:
        """Return what became of a case; it must be one thing."""
        [found] = self.outputs[CASES.index(case)]
        return found


@pytest.fixture(scope="module")
def taken(
    servers: str,
    spark: SparkSession,
    new_name: Callable[[str], str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Run:
    """Let the routing job take in all cases, in one partition."""
    topic = new_name("bad")
    place: Path = tmp_path_factory.mktemp("bad")
    (place / "things.toml").write_text(DEFINITION)
    create_topic(servers, topic, config={"max.message.bytes": str(TOPIC_BYTES)})
    produce_records(servers, topic, [Record(case.key, case.value) for case in CASES])
    options = RouteOptions(
        bootstrap_servers=servers,
        topic=topic,
        definition=str(place / "things.toml"),
        set={"prefix": topic},
        once=True,
        checkpoint=place / "checkpoint",
    )
    assert run_to_end(start(spark, options)) == {NAME: len(CASES)}
    outputs: dict[int, list[tuple[str, Read]]] = {offset: [] for offset in range(len(CASES))}
    for route, target in options.targets().items():
        for record in read_topic(servers, target):
            name, partition, offset = record.headers["source"].decode().split("/")
            assert (name, partition) == (topic, "0")
            outputs[int(offset)].append((route, record))
    return Run(topic, outputs)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_record_is_kept_once_where_it_belongs(
    case: Case, taken: Run, spark: SparkSession
) -> None:
    assert spark is not None
    route, record = taken.only(case)
    value = json.loads(record.value or b"")
    source = {"topic": taken.topic, "partition": 0, "offset": CASES.index(case)}
    assert value["source"] == source
    assert value.get("reason", route) == case.outcome
    assert len(record.value or b"") < USUAL_BYTES


@pytest.mark.parametrize("case", [*CASES[: -len(FINE)]], ids=lambda case: case.name)
def test_a_reject_says_what_is_wrong_and_keeps_what_there_was(
    case: Case, taken: Run, spark: SparkSession
) -> None:
    assert spark is not None
    route, record = taken.only(case)
    value = json.loads(record.value or b"")
    assert (route, value["job"]) == ("rejected", NAME)
    assert value["detail"] is not None
    assert value["raw_bytes"] == (None if case.value is None else len(case.value))
    assert record.key == (case.key if len(case.key or b"") <= 10_000 else None)
    if case.value is not None and len(case.value) <= 100_000:
        kept = base64.b64decode(value["raw_base64"] or "") or value["raw"].encode()
        assert kept == case.value
    elif case.value is not None:
        text = case.value.decode(errors="replace")
        assert text.startswith(value["raw"])
        assert len(value["raw"]) >= 50_000


def test_a_reason_is_told_in_words(taken: Run, spark: SparkSession) -> None:
    assert spark is not None
    wanted = {
        "a number as text": "size: expected integer, got text",
        "an unknown key": "colour",
        "without a key": "ratio",
        "too small": "size -1",
        "no route": "no route takes it",
        "much longer": f"{len(_good(note='x' * 5_000_000))} bytes, at most 1000000",
    }
    found = {
        case.name: json.loads(taken.only(case)[1].value or b"")["detail"]
        for case in CASES
        if case.name in wanted
    }
    assert found == wanted


def test_good_neighbours_of_bad_records_go_their_way(taken: Run, spark: SparkSession) -> None:
    assert spark is not None
    by_name = {case.name: taken.only(case)[1] for case in FINE}
    keyed_by_note = by_name["good without a key"]
    assert keyed_by_note.key == b"n"
    assert json.loads(keyed_by_note.value or b"")["twice"] == "nn"
    assert by_name["a key that is not UTF-8"].key == b"\xff\x00"
    assert json.loads(by_name["a null that may be"].value or b"")["note"] is None
    whole = json.loads(by_name["as long as may be"].value or b"")
    assert whole["twice"] == "x" * 600_000
