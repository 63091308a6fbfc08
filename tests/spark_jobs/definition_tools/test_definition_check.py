"""All mistakes of a definition at once, with lines; and the schema that editors take."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING

import pytest

from spark_jobs.definition_tools.check import main
from spark_jobs.definition_tools.definition_check import checked
from spark_jobs.definition_tools.definition_file import json_schema
from spark_jobs.definition_tools.toml_lines import line_of, lines_of_keys
from spark_jobs.definitions.definition import BUILT_IN, SECTIONS
from spark_jobs.errors import EXIT_BAD_OPTION

if TYPE_CHECKING:
    from pathlib import Path

WRONG = '''[parameters]
most = 5
[record]
event_tiem = "x"
event_time = "at"
[record.fields]
at = { type = "string" }
size = { type = "integer", min = 0, high = "x" }
total = { type = "decimal", nulable = true }
[record.fields.items]
type = "array"
[record.fields.items.items]
type = "object"
fields.price = { type = "decimal(9,2)", minimum = 1 }
[[record.rules]]
reason = "fine"
when = "true"
detail = "size"
[[record.rules]]
reason = "Too many"
when = """
size > ${mots}
foo = 1
"""
detail = "size"
[aggregat.x]
a = 1
[aggregate.y]
topic = "bad topic"
granularities = ["1 fortnight"]
'''
MISTAKES = (
    "4: record.event_tiem: unknown key, did you mean 'event_time'?",
    "7: record.fields.at.type: unknown type, did you mean 'text'?, got 'string'",
    "8: record.fields.size.high: expected a number, a date or a time, got 'x'",
    "8: record.fields.size.min: unknown key, did you mean 'low'?",
    "9: record.fields.total.nulable: unknown key, did you mean 'nullable'?",
    "9: record.fields.total.type: unknown type, did you mean 'decimal(P,S)'?, got 'decimal'",
    "14: record.fields.items.items.fields.price.minimum: unknown key, did you mean 'low'?",
    (
        "20: record.rules.1.reason: expected small letters and digits with '-' between words,"
        " got 'Too many'"
    ),
    "21: record.rules.1.when: ${mots} is not in [parameters], did you mean 'most'?",
    "26: aggregat: [aggregat] is unknown, did you mean 'aggregate'?",
    "28: aggregate.y.measures: is missing",
    (
        "29: aggregate.y.topic: expected letters, digits, '.', '_' and '-', at most 249,"
        " got 'bad topic'"
    ),
    (
        "30: aggregate.y.granularities.0: expected a number of seconds, minutes, hours or days,"
        " as '1 hour', got '1 fortnight'"
    ),
)
COLUMNS = """[record]
event_time = "at"
fields.at.type = "timestamp"
fields.origin.type = "text"
[aggregate.y]
topic = "t"
granularities = ["1 hour"]
group_by = ["origen"]
measures.n = "count(1)"
[route]
leave_out = ["origin", "dest"]
[[route.routes]]
name = "all"
topic = "t"
"""


def _file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "orders.toml"
    path.write_text(text)
    return path


def test_all_mistakes_are_listed_with_their_lines(tmp_path: Path) -> None:
    path = _file(tmp_path, WRONG)
    assert checked(path) == [f"{path}:{words}" for words in MISTAKES]


def test_a_name_where_a_column_must_be_is_looked_up(tmp_path: Path) -> None:
    path = _file(tmp_path, COLUMNS)
    assert checked(path) == [
        f"{path}:8: aggregate.y.group_by: there is no column 'origen', did you mean 'origin'?",
        f"{path}:11: route.leave_out: there is no column 'dest'",
    ]


def test_what_is_no_toml_has_a_line_too(tmp_path: Path) -> None:
    path = _file(tmp_path, "[record]\nevent_time = \n")
    assert checked(path)[0].startswith(f"{path}:2: not TOML: ")
    path.write_bytes(b"\xff")
    assert checked(path)[0].startswith(f"{path}:1: not UTF-8: ")


@pytest.mark.parametrize("path", sorted(BUILT_IN.glob("*.toml")), ids=lambda path: path.stem)
def test_nothing_is_wrong_with_what_is_built_in(path: Path) -> None:
    assert checked(path) == []


def test_each_key_of_a_file_has_its_line() -> None:
    text = (BUILT_IN / "flights.toml").read_text(encoding="utf-8")
    lines = lines_of_keys(text)
    for name in tomllib.loads(text)["record"]["fields"]:
        number = line_of(("record", "fields", name, "type"), lines)
        assert text.splitlines()[number - 1].startswith(f"{name} = ")
    third = line_of(("record", "rules", 2, "when"), lines)
    assert text.splitlines()[third - 1].startswith('when = "arr_time')


def test_the_command_ends_with_the_code_of_a_bad_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _file(tmp_path, WRONG)
    assert main([str(BUILT_IN / "planes.toml")]) == 0
    assert main([str(BUILT_IN / "planes.toml"), str(path)]) == EXIT_BAD_OPTION
    assert len(capsys.readouterr().err.splitlines()) == len(MISTAKES)
    assert main([]) == main([str(tmp_path / "none.toml")]) == EXIT_BAD_OPTION


def test_the_schema_describes_each_section(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema == json.loads(json.dumps(json_schema()))
    assert set(schema["properties"]) == set(SECTIONS)
    fields = schema["$defs"]["Field"]["properties"]
    assert "decimal" in json.dumps(fields["type"])
    assert all("description" in one for one in fields.values())
