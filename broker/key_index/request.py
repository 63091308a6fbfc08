"""A client's look-up request, parsed from the query of a URL.

    /records?topic=orders&key=4711&from=2026-11-23T10:00:00Z&limit=10

Decides only: the error of a request is one line.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl

from storage.key_index.query import EARLIEST, LATEST, Query

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_LIMIT: Final = 100
LONGEST_QUERY: Final = 1 << 16
MOST_PARAMETERS: Final = 20
LONGEST_PLACE: Final = 30
PARAMETERS: Final = (
    "topic",
    "key",
    "key.base64",
    "id",
    "id.base64",
    "from",
    "to",
    "partition",
    "limit",
    "isolation",
    "start",
)
READ_COMMITTED: Final = "read_committed"
READ_UNCOMMITTED: Final = "read_uncommitted"


class BadRequestError(Exception):
    """A client's request is invalid; the text has the reason."""


@dataclass(frozen=True, slots=True)
class LookupRequest:
    """A request for records."""

    topic: str
    query: Query
    partition: int | None = None
    """The only one to be searched; None is all."""
    start: tuple[int, int] = (0, 0)
    """Partition and offset of where to begin: the `next` of an earlier answer."""
    limit: int = DEFAULT_LIMIT
    is_read_committed: bool = True


def read_request(text: str) -> LookupRequest:
    """The request in the query of a URL. Raises BadRequestError."""
    given = parameters_of(text, PARAMETERS)
    key, message_id = content_of(given, "key"), content_of(given, "id")
    if key is None and message_id is None:
        raise BadRequestError("key or id is missing")
    from_ms, to_ms = _time(given, "from", EARLIEST), _time(given, "to", LATEST)
    return LookupRequest(
        given["topic"],
        Query(key, message_id, from_ms, to_ms),
        number_of(given, "partition", None),
        _place(given.get("start", "0:0")),
        limit_of(given),
        _is_read_committed(given.get("isolation", READ_COMMITTED)),
    )


def parameters_of(text: str, known: Sequence[str]) -> dict[str, str]:
    """The parameters of a query, a topic at least. Raises BadRequestError."""
    if len(text) > LONGEST_QUERY:
        raise BadRequestError(f"the query has {len(text)} characters; {LONGEST_QUERY} are allowed")
    try:
        pairs = parse_qsl(
            text,
            keep_blank_values=True,
            strict_parsing=bool(text),
            errors="surrogateescape",
            max_num_fields=MOST_PARAMETERS,
        )
    except ValueError as error:
        raise BadRequestError(f"the query cannot be read: {error}") from None
    given = dict(pairs)
    for name in given:
        if name not in known:
            raise BadRequestError(f"{name!r:.100} is none of {', '.join(known)}")
    if len(given) < len(pairs):
        raise BadRequestError("a parameter is given more than once")
    if not given.get("topic"):
        raise BadRequestError("topic is missing")
    return given


def content_of(given: dict[str, str], name: str) -> bytes | None:
    """Required key or id: bytes, given as text or as base64."""
    plain, coded = given.get(name), given.get(f"{name}.base64")
    if plain is not None and coded is not None:
        raise BadRequestError(f"{name} and {name}.base64 are both given")
    if coded is None:
        return None if plain is None else plain.encode(errors="surrogateescape")
    try:
        return base64.b64decode(coded, validate=True)
    except (binascii.Error, ValueError):
        raise BadRequestError(f"{name}.base64 is no base64") from None


def number_of(
    given: dict[str, str], name: str, default: int | None, most: int = 1 << 31
) -> int | None:
    """A number below `most`."""
    text = given.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > LONGEST_PLACE or int(text) >= most:
        raise BadRequestError(f"{name}={text:.100} is no number that can be")
    return int(text)


def limit_of(given: dict[str, str]) -> int:
    """Maximum number of records."""
    limit = number_of(given, "limit", None)
    if limit == 0:
        raise BadRequestError("limit=0 asks for nothing")
    return DEFAULT_LIMIT if limit is None else limit


def _time(given: dict[str, str], name: str, default: int) -> int:
    """Milliseconds since 1970, or a time by ISO 8601, in UTC if it does not say where."""
    text = given.get(name)
    if text is None:
        return default
    if text.removeprefix("-").isdecimal() and text.isascii():
        return min(max(int(text[:30]), EARLIEST), LATEST)
    try:
        # The encoding of a blank in a URL is also the sign of a time zone.
        time = datetime.fromisoformat(text.replace(" ", "+") if "T" in text else text)
    except ValueError:
        text = f"{name}={text:.100} is neither milliseconds nor a time such as 2026-11-23T10:00:00Z"
        raise BadRequestError(text) from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return round(time.timestamp() * 1000)


def _place(text: str) -> tuple[int, int]:
    partition, colon, offset = text.partition(":")
    if (
        not colon
        or not partition.isdecimal()
        or not offset.isdecimal()
        or len(text) > LONGEST_PLACE
    ):
        raise BadRequestError(f"start={text:.100} is no PARTITION:OFFSET")
    return int(partition), int(offset)


def _is_read_committed(text: str) -> bool:
    if text not in (READ_COMMITTED, READ_UNCOMMITTED):
        raise BadRequestError(
            f"isolation={text:.100} is none of {READ_COMMITTED}, {READ_UNCOMMITTED}"
        )
    return text == READ_COMMITTED
