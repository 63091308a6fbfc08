"""Conditions under which a compiled build is used, and refused."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from compiled.activation import CHOICE, DIRECTORY, BuildError, build_directory, decide
from compiled.build_record import BuildRecord, digest_of, this_python

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """A build of one module, which lies beside it."""
    (tmp_path / "one.py").write_text("x = 1")
    digests = {"one.py": digest_of(tmp_path / "one.py") or ""}
    BuildRecord(this_python(), ("one",), digests).write(tmp_path)
    return tmp_path


@pytest.mark.parametrize("environ", [{}, {CHOICE: "auto"}, {CHOICE: "yes"}])
def test_build_that_is_right_is_used(build: Path, environ: dict[str, str]) -> None:
    activation, record = decide(environ, build, build)

    assert activation.answer == "yes"
    assert activation.reason == f"1 modules from {build}"
    assert record is not None
    assert record.modules == ("one",)


def test_broker_compiled_no_ignores_the_build(build: Path) -> None:
    activation, record = decide({CHOICE: "no"}, build, build)

    assert (activation.answer, activation.is_outdated, record) == ("no", False, None)


def test_an_outdated_build_is_reported_and_not_used(build: Path) -> None:
    (build / "one.py").write_text("x = 2")

    activation, record = decide({}, build, build)

    assert (activation.answer, activation.is_outdated, record) == ("no", True, None)
    assert activation.reason.endswith("is not used: one.py has changed since")


def test_a_missing_build_is_not_reported(tmp_path: Path) -> None:
    activation, record = decide({}, tmp_path / "compiled", tmp_path)

    assert (activation.answer, activation.is_outdated, record) == ("no", False, None)


@pytest.mark.parametrize("text", ["x = 2", None])
def test_broker_compiled_yes_requires_a_current_build(build: Path, text: str | None) -> None:
    if text is None:
        build /= "elsewhere"
    else:
        (build / "one.py").write_text(text)

    with pytest.raises(BuildError, match=r"BROKER_COMPILED=yes, but .*\(make compile\)"):
        decide({CHOICE: "yes"}, build, build)


def test_other_words_are_refused(build: Path) -> None:
    with pytest.raises(BuildError, match="is 'maybe': it must be yes, no or auto"):
        decide({CHOICE: "maybe"}, build, build)


def test_build_lies_in_the_source_tree_or_the_environment(tmp_path: Path) -> None:
    assert build_directory({}, tmp_path).is_relative_to(sys.prefix)
    (tmp_path / "pyproject.toml").touch()
    assert build_directory({}, tmp_path) == tmp_path / "build" / "compiled"
    assert build_directory({DIRECTORY: "/elsewhere"}, tmp_path).as_posix() == "/elsewhere"
