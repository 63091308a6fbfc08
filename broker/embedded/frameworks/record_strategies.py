"""Hypothesis strategies for records, as producers may send them: whatever a broker has to take."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

LONGEST_NAME = 20
"""Characters of a header's name."""
LATEST_MS = 1_577_836_800_000
"""The year 2020, for timestamps: brokers refuse those from the future."""


class AnyRecord(NamedTuple):
    """A record to be sent."""

    key: bytes | None
    value: bytes | None
    """None is what deletes a key from a compacted topic."""
    headers: tuple[tuple[str, bytes | None], ...]
    """A name may occur twice."""
    timestamp: int
    """Milliseconds since the epoch."""


def any_record(
    *, max_bytes: int = 100, max_headers: int = 3, keyed: bool = False
) -> SearchStrategy[AnyRecord]:
    """Records with keys and values of up to `max_bytes`; `keyed` ones have a key.

    Names of headers have no NUL, at which librdkafka ends them. Needs hypothesis.
    """
    from hypothesis import strategies  # noqa: PLC0415 - not everybody has it

    some_bytes = strategies.binary(max_size=max_bytes)
    bytes_or_none = strategies.none() | some_bytes
    name = strategies.text(
        strategies.characters(codec="utf-8", exclude_characters="\0"),
        min_size=1,
        max_size=LONGEST_NAME,
    )
    header = strategies.tuples(name, bytes_or_none)
    return strategies.builds(
        AnyRecord,
        key=some_bytes if keyed else bytes_or_none,
        value=bytes_or_none,
        headers=strategies.lists(header, max_size=max_headers).map(tuple),
        timestamp=strategies.integers(0, LATEST_MS),
    )
