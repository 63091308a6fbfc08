"""Patterns of transactional ids: what they match, that they take little time, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.patterns import LARGEST_BYTES, LONGEST_MATCH, Pattern
from protocol.errors import ApiError, ErrorCode
from tests.golden import java_patterns

LONGEST = 1024
TEXTS = ["a", "aaa", "ab", "b", "", "payments-1", "Payments", "a.b", "a b", "ü", "日本"]
TEXTS += ["pay\\ments", "0", "_", "A1", "😀", "k", "K", "\u017f"]
PATTERNS = (Path(java_patterns.__file__).with_name("patterns.txt")).read_text("utf-8").splitlines()


def ours(pattern: str) -> list[bool] | None:
    try:
        compiled = Pattern(pattern, LONGEST)
    except ApiError:
        return None
    return [compiled.matches(text) for text in TEXTS]


@pytest.mark.java
def test_patterns_match_as_in_apache_kafka() -> None:
    theirs = java_patterns.ask(PATTERNS, TEXTS)
    assert {p: ours(p) for p in PATTERNS} == dict(zip(PATTERNS, theirs, strict=True))
    assert theirs.count(None) > 20
    assert sum(True in (each or ()) for each in theirs) > 50


def test_the_whole_id_must_match() -> None:
    pattern = Pattern("pay|payments-[0-9]+", LONGEST)
    assert pattern.matches("payments-17")
    assert not pattern.matches("payments-17b")
    assert not pattern.matches("my-payments-17")


def test_a_pattern_that_would_be_tried_in_all_ways_is_tried_in_one() -> None:
    """Python's own engine would take a hundred thousand years for this id."""
    assert not Pattern("(a+)+b", LONGEST).matches("a" * 1000)


@pytest.mark.parametrize("pattern", ["(", "a**", "(?=a)", r"(a)\1", "a{1001}", "[b-a]"])
def test_a_pattern_that_does_not_compile_is_refused(pattern: str) -> None:
    with pytest.raises(ApiError, match="is not a valid regular expression") as refusal:
        Pattern(pattern, LONGEST)
    assert refusal.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert pattern in refusal.value.message


def test_a_pattern_has_a_longest_length() -> None:
    assert not Pattern("a" * LONGEST, LONGEST).matches("a" * 100)
    with pytest.raises(ApiError, match="at most 1024 are allowed") as refusal:
        Pattern("a" * (LONGEST + 1), LONGEST)
    assert refusal.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION


@pytest.mark.parametrize("pattern", [r"(\pL{30}){33}", r"[^\pL]{100}\pL{100}"])
def test_a_short_pattern_that_compiles_to_much_is_refused(pattern: str) -> None:
    with pytest.raises(ApiError, match="too large") as refusal:
        Pattern(pattern, LONGEST)
    assert refusal.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert LARGEST_BYTES < 1 << 20


def test_a_large_pattern_is_not_tried_on_a_long_id() -> None:
    large = Pattern("(a|b)*a(a|b){900}", LONGEST)
    assert large.matches("a" * 1000)
    with pytest.raises(ApiError, match="too large for ids as long as there are") as refusal:
        large.matches("a" * LONGEST_MATCH)
    assert refusal.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_length_of_ids_counts_in_bytes() -> None:
    large = Pattern("(a|é)*a(a|é){200}", LONGEST)
    size = large._size
    fits = LONGEST_MATCH // size
    assert not large.matches("b" * fits)
    with pytest.raises(ApiError):
        large.matches("é" * fits)
