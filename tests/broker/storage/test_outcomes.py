"""Each command line of `cases.toml` does what Apache Kafka 4.4.0 was seen to do with it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from broker.storage.__main__ import main
from tests.support.storage_tool.cases import Case, read_cases
from tests.support.storage_tool.outcomes import Outcome, outcome_of, read_golden

if TYPE_CHECKING:
    from pathlib import Path

DIFFERENT = {
    "standalone, IPv6": "Apache's tool writes the address without brackets and cannot read it",
    "info: no version": "a broker takes that for a damaged file, and Apache's for version 0",
    "initial controllers, reserved directory": "no node starts with it",
    "initial controllers, zero directory": "no node starts with it",
}
"""Cases in which ours does something else, and why."""

CASES = [case for cases in read_cases().values() for case in cases]


@pytest.fixture(scope="module")
def golden() -> dict[str, Outcome]:
    return read_golden()


def run(case: Case, root: Path, capsys: pytest.CaptureFixture[str]) -> tuple[Outcome, str]:
    """The outcome of a case, and what was written to standard error."""
    with pytest.raises(SystemExit) as ended:
        sys.exit(main(case.prepare(root)))  # which argparse does by itself
    output, errors = capsys.readouterr()
    return outcome_of(case, root, ended.value.code, output), errors


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_outcome_is_that_of_apache(
    case: Case, golden: dict[str, Outcome], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, errors = run(case, tmp_path / "run", capsys)

    if case.name in DIFFERENT:
        assert ours != golden[case.name]
    else:
        assert ours == golden[case.name]
    is_reported = any(line.startswith("Found problem") for line in ours.words)
    assert bool(errors) == (ours.exit_code != 0 and not is_reported), errors


def test_every_difference_is_one_of_the_cases() -> None:
    assert DIFFERENT.keys() <= {case.name for case in CASES}


def test_command_line_that_is_not_utf_8_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (case,) = (one for one in CASES if one.name == "static voters")

    assert main([*case.prepare(tmp_path / "run"), "-t", "\udcff"]) == 1

    assert capsys.readouterr().err == "the command line is not UTF-8\n"
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["server.properties"]
