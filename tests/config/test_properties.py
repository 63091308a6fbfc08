"""Property files are read as Java reads them."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.errors import ConfigError
from config.properties import Property, parse


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("a=b", "a", "b"),
        ("a = b", "a", "b"),
        ("a:b", "a", "b"),
        ("a : b", "a", "b"),
        ("a b", "a", "b"),
        ("a\tb c", "a", "b c"),
        ("   a=b  ", "a", "b  "),
        ("a", "a", ""),
        ("a=", "a", ""),
        ("a==b", "a", "=b"),
        ("a = = b", "a", "= b"),
        (r"a\=b=c", "a=b", "c"),
        (r"a\:b\ c=d", "a:b c", "d"),
        (r"a=\tb\n\r\f", "a", "\tb\n\r\f"),
        (r"a=\u00e9\u20AC", "a", "\u00e9\u20ac"),
        (r"a=c:\\temp\q", "a", "c:\\tempq"),
        ("listeners=PLAINTEXT://:9092", "listeners", "PLAINTEXT://:9092"),
        ("a=b # no comment", "a", "b # no comment"),
    ],
)
def test_one_line_is_one_entry(text: str, name: str, value: str) -> None:
    assert parse(text) == [Property(name, value, 1)]


def test_comments_and_blank_lines_are_no_entries_but_count_as_lines() -> None:
    assert parse("# one\n\n  ! three\r\n\t\na=b\n") == [Property("a", "b", 5)]


def test_a_backslash_at_the_end_continues_the_line_without_the_next_ones_indent() -> None:
    assert parse("a=1,\\\n    2,\\\n\t3\nb=4") == [Property("a", "1,2,3", 1), Property("b", "4", 4)]


def test_two_backslashes_at_the_end_are_one_backslash_and_continue_nothing() -> None:
    assert parse("a=1\\\\\nb=2") == [Property("a", "1\\", 1), Property("b", "2", 2)]


def test_a_continued_line_may_look_like_a_comment() -> None:
    assert parse("a=1\\\n#2") == [Property("a", "1#2", 1)]


def test_a_comment_ending_in_a_backslash_continues_nothing() -> None:
    assert parse("# c\\\na=b") == [Property("a", "b", 2)]


def test_a_file_may_end_in_a_continuation() -> None:
    assert parse("a=b\\") == [Property("a", "b", 1)]


def test_repeated_keys_are_all_reported() -> None:
    assert [entry.value for entry in parse("a=1\na=2")] == ["1", "2"]


@pytest.mark.parametrize("text", [r"a=\u12", r"a=\u12g4", "a=\\u 123"])
def test_a_malformed_unicode_escape_names_its_line(text: str) -> None:
    with pytest.raises(ConfigError, match=r"line 2: .*hexadecimal"):
        parse(f"# fine\n{text}")


@given(st.text(alphabet=st.sampled_from("ab\\u0=: #!\t\n\r"), max_size=60))
def test_any_text_is_either_read_or_refused_with_a_line_number(text: str) -> None:
    with suppress(ConfigError):
        for entry in parse(text):
            assert 1 <= entry.line <= text.count("\n") + text.count("\r") + 1
