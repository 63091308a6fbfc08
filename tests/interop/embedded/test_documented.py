"""The tests in docs/testing.md pass as they stand there."""

from __future__ import annotations

import re

import kafka  # noqa: F401 - which warns when it is imported for the first time
import pytest

from tests.interop.embedded.test_plugin import OPTIONS
from tests.support.jars import REPOSITORY

pytest_plugins = ["pytester"]

TEXT = (REPOSITORY / "docs" / "testing.md").read_text(encoding="utf-8")
FILES = {
    match["name"]: match["body"]
    for match in re.finditer(r"```python\n# (?P<name>\w+)\.py\n(?P<body>.*?)```", TEXT, re.DOTALL)
}


def test_all_blocks_are_found() -> None:
    assert len(FILES) == TEXT.count("```python") >= 6


@pytest.mark.parametrize("name", FILES)
def test_documented_tests_pass(pytester: pytest.Pytester, name: str) -> None:
    pytester.makepyfile(**{name: FILES[name]})
    result = pytester.runpytest_inprocess(*OPTIONS)
    result.assert_outcomes(passed=len(re.findall(r"^ *def test_", FILES[name], re.MULTILINE)))
