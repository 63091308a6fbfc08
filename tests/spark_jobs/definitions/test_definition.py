"""Definition files: what they may say, and the line that a mistake gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spark_jobs.definitions.definition import BUILT_IN, load_definition
from spark_jobs.errors import BadOptionError

if TYPE_CHECKING:
    from pathlib import Path

SMALL = """
[parameters]
most = 5
[record]
event_time = "to_timestamp(at)"
latest = "1 hour"
[record.fields]
at = { type = "text" }
size = { type = "integer", low = 0, high = 9, nullable = true }
note = { type = "text", optional = true }
[[record.rules]]
reason = "too-many"
when = "size > ${most}"
detail = "size"
"""


def _file(tmp_path: Path, text: str) -> str:
    path = tmp_path / "small.toml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("name", [path.stem for path in BUILT_IN.glob("*.toml")])
def test_what_is_built_in_can_be_loaded(name: str) -> None:
    assert load_definition(name).record.fields


def test_parameters_are_put_in_and_changed(tmp_path: Path) -> None:
    path = _file(tmp_path, SMALL)
    assert load_definition(path).record.rules[0].when == "size > 5"
    assert load_definition(path, {"most": "7"}).record.rules[0].when == "size > 7"


@pytest.mark.parametrize(
    ("changed", "to", "message"),
    [
        (
            'type = "integer"',
            'type = "int"',
            "record.fields.size.type: unknown type, did you mean 'integer'",
        ),
        ("low = 0", "lowest = 0", "record.fields.size.lowest: unknown key; known are type, key"),
        ('"too-many"', '"Too many"', "record.rules.0.reason: expected small letters and digits"),
        ("[record]", "[records]", r"\[records\] is unknown, did you mean 'record'"),
        ("${most}", "${least}", r"\$\{least\} is not in \[parameters\]"),
        ("most = 5", "most = ", "not TOML: "),
        ("size =", "Key =", "record: there are two columns 'key'$"),
        ("size =", "AT =", "record: there are two columns 'at'$"),
    ],
)
def test_a_mistake_is_named_with_file_and_key(
    changed: str, to: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(BadOptionError, match=rf"^--definition: .*small\.toml: {message}"):
        load_definition(_file(tmp_path, SMALL.replace(changed, to)))


def test_a_parameter_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadOptionError, match=r"^--set least: .*; it has: most$"):
        load_definition(_file(tmp_path, SMALL), {"least": "1"})


def test_a_file_that_is_not_there_says_what_is_built_in() -> None:
    with pytest.raises(BadOptionError, match=r"there is no file .*built in are: .*flights"):
        load_definition("nowhere")
