"""Log lines caused by strangers are bounded, and the number left out is logged."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from broker.security.line_budget import LineBudget

if TYPE_CHECKING:
    import pytest

logger = logging.getLogger("budget")
SUBJECT = "connections closed"


def test_lines_above_the_limit_are_counted_and_the_count_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    budget = LineBudget(logger, SUBJECT, 2, "a.key")
    assert [budget.take(7) for _ in range(5)] == [True, True, False, False, False]
    assert caplog.messages == [f"{SUBJECT}: the rest of this second is counted only (a.key)"]
    assert budget.take(9)
    assert caplog.messages[1:] == [f"{SUBJECT}: 3 lines left out"]


def test_a_second_within_the_limit_is_not_remarked_on(caplog: pytest.LogCaptureFixture) -> None:
    budget = LineBudget(logger, SUBJECT, 2, "a.key")
    assert all(budget.take(second) for second in (1, 1, 2, 2, 3))
    assert not caplog.messages


@given(st.lists(st.integers(0, 5)).map(sorted), st.integers(1, 4))
def test_no_second_has_more_lines_than_allowed(seconds: list[int], limit: int) -> None:
    budget = LineBudget(logging.getLogger("unheard"), SUBJECT, limit, "a.key")
    taken = [second for second in seconds if budget.take(second)]
    assert taken == [
        second for place, second in enumerate(seconds) if place - seconds.index(second) < limit
    ]
