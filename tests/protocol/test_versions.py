"""Version ranges."""

from __future__ import annotations

import pytest

from protocol.versions import HIGHEST_VERSION, NO_VERSIONS, Versions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", Versions(3, 3)),
        ("0-12", Versions(0, 12)),
        ("9+", Versions(9, HIGHEST_VERSION)),
        ("none", NO_VERSIONS),
    ],
)
def test_text_is_read_and_comes_back(text: str, expected: Versions) -> None:
    assert Versions.parse(text) == expected
    assert str(expected) == text


def test_ends_are_included() -> None:
    assert [version for version in range(6) if version in Versions(2, 4)] == [2, 3, 4]
    assert 32767 in Versions.parse("9+")
    assert 0 not in NO_VERSIONS


@pytest.mark.parametrize("text", ["", "x", "1-", "-", "+", "1-x"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="invalid"):
        Versions.parse(text)
