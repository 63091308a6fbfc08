"""Lengths of time are numbers with units."""

from __future__ import annotations

import pytest

from config.errors import ConfigError
from config.rules import Durations, milliseconds


def test_common_time_units_are_parsed() -> None:
    written = ("5ms", "90s", "5m", "2h", "1d")

    assert list(map(milliseconds, written)) == [5, 90_000, 300_000, 7_200_000, 86_400_000]


@pytest.mark.parametrize("text", ["", "5", "s", "-5s", "5 s", "1.5h", "5w", "9" * 13 + "s"])
def test_text_without_number_and_unit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="units"):
        milliseconds(text)


def test_a_list_says_which_one_is_wrong_and_how_many_there_may_be() -> None:
    rule = Durations(2)
    rule.check("retry.levels", ("1s", "2m"))

    with pytest.raises(ConfigError, match="2x"):
        rule.check("retry.levels", ("1s", "2x"))
    for wrong in ((), ("1s", "2s", "3s")):
        with pytest.raises(ConfigError, match="1 to 2"):
            rule.check("retry.levels", wrong)
