"""Start offset of share groups, in the words of Apache Kafka."""

from __future__ import annotations

import pytest

from config.errors import ConfigError
from config.groups.offset_reset import OffsetReset, duration_ms


@pytest.mark.parametrize(
    ("reset", "wanted_ms"),
    [
        ("earliest", None),
        ("latest", None),
        ("by_duration:PT1H", 3_600_000),
        ("by_duration:P1DT2H3M4.5S", 93_784_500),
        ("by_duration:pt0s", 0),
        ("by_duration:PT-1M90S", 30_000),
        ("by_duration:-PT-1S", 1000),
        ("by_duration:PT.5S", "refused"),
        ("by_duration:PT0.0009S", 0),
    ],
)
def test_durations_are_parsed_as_by_java(reset: str, wanted_ms: int | str | None) -> None:
    if wanted_ms == "refused":
        with pytest.raises(ValueError, match="no way"):
            duration_ms(reset)
    else:
        assert duration_ms(reset) == wanted_ms


@pytest.mark.parametrize(
    "reset",
    [
        *("", "none", "LATEST", "by_duration", "by_duration:", "by_duration:P", "by_duration:PT"),
        *("by_duration:1h", "by_duration:P1DT", "by_duration:-PT1S", "by_duration:PT-1S", "PT1H"),
        "by_duration:P" + "9" * 60_000 + "D",
        "by_duration:P99999999999999999999D",
    ],
)
def test_an_invalid_offset_reset_is_refused_with_apaches_message(reset: str) -> None:
    with pytest.raises(ConfigError, match="must be either 'earliest', 'latest' or of the format"):
        OffsetReset().check("share.auto.offset.reset", reset)
