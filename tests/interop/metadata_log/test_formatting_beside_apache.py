"""`broker.storage` beside Apache Kafka's `kafka-storage`: same command lines, same files."""

from __future__ import annotations

import json
import os
from contextlib import closing
from random import Random
from typing import TYPE_CHECKING

import pytest

from broker.storage.__main__ import main
from protocol.records.batch import iterate_headers
from protocol.records.record import iterate_records
from tests.support import jars
from tests.support.storage_tool.cases import Case, drawn_case, read_cases
from tests.support.storage_tool.outcomes import GOLDEN, Outcome, outcome_of, read_golden
from tests.support.tools import Tools

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.interop, pytest.mark.java, pytest.mark.slow]

CASES = [case for cases in read_cases().values() for case in cases]
DRAWN = 100
BY_NAME = {case.name: case for case in CASES}
CHECKPOINT = "one/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"


@pytest.fixture(scope="module")
def apache() -> Iterator[Tools]:
    with closing(Tools(jars.KAFKA_4)) as tools:
        yield tools


@pytest.fixture(scope="module")
def apache_4_3() -> Iterator[Tools]:
    with closing(Tools(jars.KAFKA_4_3)) as tools:
        yield tools


def outcome(tools: Tools, case: Case, root: Path) -> Outcome:
    ran = tools.run("storage", *case.prepare(root))
    return outcome_of(case, root, ran.exit_code, ran.output)


def test_apache_does_what_unit_tests_take_it_to_do(apache: Tools, tmp_path: Path) -> None:
    """Write the file with REWRITE=yes, when Apache Kafka is another one or a case is new."""
    seen = {
        case.name: outcome(apache, case, tmp_path / str(number))
        for number, case in enumerate(CASES)
    }
    if os.environ.get("REWRITE") == "yes":
        lines = (
            f" {json.dumps(name, ensure_ascii=False)}: {json.dumps(one, ensure_ascii=False)}"
            for name, one in seen.items()
        )
        GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")

    golden = read_golden()
    assert golden.keys() == seen.keys()
    assert {name: one for name, one in seen.items() if one != golden[name]} == {}


@pytest.mark.parametrize("seed", range(3))
def test_drawn_command_lines_have_the_same_outcome(
    seed: int, apache: Tools, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    random = Random(seed)
    succeeded = 0
    for number in range(DRAWN):
        case, root = drawn_case(random), tmp_path / str(number)
        exit_code = main(case.prepare(root / "ours"))
        ours = outcome_of(case, root / "ours", exit_code, capsys.readouterr().out)
        assert ours == outcome(apache, case, root / "theirs"), case
        succeeded += exit_code == 0
    assert DRAWN // 5 < succeeded < DRAWN, "both kinds are among them"


def test_older_tool_refuses_the_same_command_lines(apache_4_3: Tools, tmp_path: Path) -> None:
    """All but those about releases that came after it."""
    groups = read_cases()
    asked = [one for name in ("quorums", "scram", "directories", "files") for one in groups[name]]
    golden = read_golden()

    for number, case in enumerate(asked):
        exit_code = outcome(apache_4_3, case, tmp_path / str(number)).exit_code
        assert exit_code == golden[case.name].exit_code, case.name


def values(path: Path, *, are_control: bool) -> list[tuple[int, bytes | None, bytes | None]]:
    """Place, key and value of the records in batches of one kind, without those with times."""
    content = path.read_bytes()
    return [
        (record.offset - header.base_offset, record.key, record.value)
        for position, header in iterate_headers(content)
        if header.is_control == are_control
        for record in iterate_records(content[position : position + header.size_in_bytes])
        if record.key != b"\0\0\0\3"  # which has the time
    ]


@pytest.mark.parametrize(
    "name", ["release 4.3.1", "SCRAM in its first release", "three initial controllers"]
)
def test_records_are_those_of_the_older_layout(
    name: str, apache_4_3: Tools, tmp_path: Path
) -> None:
    """Apache Kafka 4.3 has data records in a file of their own, `bootstrap.checkpoint`."""
    case, theirs, ours = BY_NAME[name], tmp_path / "theirs", tmp_path / "ours"
    older = ("-r", "4.3") if "-r" not in case.arguments else ()
    assert main([*case.prepare(ours), *older]) == 0
    apache_4_3.check("storage", *case.prepare(theirs), *older)

    written = values(ours / CHECKPOINT, are_control=False)
    assert written
    assert written == values(theirs / "one/bootstrap.checkpoint", are_control=False)
    if (theirs / CHECKPOINT).is_file():
        control = values(ours / CHECKPOINT, are_control=True)
        assert control == values(theirs / CHECKPOINT, are_control=True)


@pytest.mark.parametrize(
    "name", ["static voters", "three initial controllers", "two directories", "no flag on a broker"]
)
def test_info_of_both_tools_is_the_same(
    name: str, apache: Tools, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case, theirs, ours = BY_NAME[name], tmp_path / "theirs", tmp_path / "ours"
    assert main(case.prepare(ours)) == 0
    apache.check("storage", *case.prepare(theirs))

    for root in (ours, theirs):
        file = str(root / "server.properties")
        capsys.readouterr()
        assert main(["info", "-c", file]) == 0
        assert capsys.readouterr().out == apache.check("storage", "info", "-c", file).output
        assert main(["format", "-c", file, "-t", "other"]) == 1
        assert apache.run("storage", "format", "-c", file, "-t", "other").exit_code == 1
