"""Ranges of addresses as hosts of access control entries."""

from __future__ import annotations

import pytest

from broker.security.acls.host_ranges import is_within, range_of


@pytest.mark.parametrize(
    ("host", "text", "expected"),
    [
        ("10.0.0.1", "10.0.0.0/8", True),
        ("10.255.255.255", "10.1.2.3/8", True),
        ("11.0.0.0", "10.0.0.0/8", False),
        ("10.0.0.0", "10.0.0.0/32", True),
        ("10.0.0.1", "0.0.0.0/0", True),
        ("0.0.0.0", "0.0.0.0/0", False),
        ("0:0:0:0:0:0:0:1", "::1/128", True),
        ("fe80:0:0:0:0:0:0:9", "fe80::/10", True),
        ("10.0.0.1", "::/0", False),
        ("0:0:0:0:0:0:0:1", "0.0.0.0/0", False),
        ("unknown peer", "10.0.0.0/8", False),
        ("10.0.0.1", "10.0.0.0/33", False),
    ],
)
def test_address_is_within_a_range_of_its_family(host: str, text: str, expected: bool) -> None:
    assert is_within(host, text) is expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("10.0.0.0/33", r"Value \[33\] not in range \[0,32\]"),
        ("10.0.0.256/8", r"Value \[256\] not in range \[0,255\]"),
        ("10.0.0.0/255.0.0.0", r"Could not parse \[10.0.0.0/255.0.0.0\]"),
        ("10.0.0/8", r"Could not parse \[10.0.0/8\]"),
        ("::1/129", "prefix length must be between 0 and 128"),
        ("::1/x", "invalid prefix length"),
        ("::g/64", r"Could not parse \[::g\]"),
    ],
)
def test_an_invalid_host_range_is_refused_with_kafkas_message(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        range_of(text)
