"""The list of what CI does not run names slow tests that there are, each with a reason."""

from __future__ import annotations

import pytest

from tests.support.jars import REPOSITORY
from tests.support.plugins.left_out import LEFT_OUT


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_is_left_out_is_a_slow_test_and_has_a_reason(name: str) -> None:
    file, _, function = name.partition("::")
    text = (REPOSITORY / file).read_text(encoding="utf-8")
    assert f"def {function}(" in text
    assert "pytest.mark.slow" in text
    assert LEFT_OUT[name]
