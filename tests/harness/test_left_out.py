"""The list of slow tests that CI does not run names tests that there are, each with a reason."""

from __future__ import annotations

import pytest

from tests.support.jars import REPOSITORY
from tests.support.plugins.left_out import LEFT_OUT


@pytest.mark.parametrize("name", LEFT_OUT)
def test_left_out_tests_are_slow_and_have_a_reason(name: str) -> None:
    path, _, function = name.partition("::")
    place = REPOSITORY / path
    files = [*place.rglob("test_*.py")] if place.is_dir() else [place]
    texts = [file.read_text(encoding="utf-8") for file in files]
    defined = f"def {function.partition('[')[0]}"
    slow = ("pytest.mark.slow", "slow_seeds(")
    assert any(defined in text and any(one in text for one in slow) for text in texts)
    assert LEFT_OUT[name]
