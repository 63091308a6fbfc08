"""Headers of retry topics: the number of attempts and, with it, the next retry or dead letter.

A consumer that fails at a record sends it to its group's retry topic, with the headers it had. The
broker counts, in `retry-attempt`, and gives it back after a delay, which grows with the attempts:

    sent       headers                          waits     given back with
    first      -                                10 s      retry-attempt: 1
    again      retry-attempt: 1                 30 s      retry-attempt: 2
    ...
    17th time  retry-attempt: 16                for ever: it is a dead letter

Dead letters go to the dead letter topic with `dead-letter-attempts`, `dead-letter-source` and
`dead-letter-time`. Delay headers were meant for the topics the record came from: here they are
ignored, and left out of the record that is given back.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.delays.header_names import OF_DELAYS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from protocol.records.record import Header

ATTEMPT: Final = "retry-attempt"
FIRST_TIME: Final = "retry-first-time"
ATTEMPTS: Final = "dead-letter-attempts"
DEAD_SOURCE: Final = "dead-letter-source"
DEAD_TIME: Final = "dead-letter-time"

DEAD: Final = -(1 << 63)
"""The number of a dead letter among the times of delivery (`delay_headers`): it has none."""

_ATTEMPT = re.compile(rb"[0-9]{1,9}")
_OF_DEATH: Final = frozenset({ATTEMPTS, DEAD_SOURCE, DEAD_TIME})
_SHOWN_BYTES: Final = 40


class RetryRules(NamedTuple):
    """Retry configuration of a topic: the delay before the first retry, the second, and so on."""

    delays_ms: tuple[int, ...]

    @property
    def most_attempts(self) -> int:
        """Number of retries after which a record becomes a dead letter."""
        return len(self.delays_ms)


def levels(delays_ms: Sequence[int], attempts: int) -> RetryRules:
    """Rules with these delays, of which the last repeats, or those behind `attempts` are left."""
    last = delays_ms[-1]
    missing = max(attempts - len(delays_ms), 0)
    return RetryRules((*delays_ms[:attempts], *[last] * missing))


def doubling(first_ms: int, most_ms: int, attempts: int) -> RetryRules:
    """Rules with delays that double from `first_ms` up to `most_ms`."""
    delays: list[int] = []
    delay_ms = min(first_ms, most_ms)
    for _ in range(attempts):
        delays.append(delay_ms)
        delay_ms = min(2 * delay_ms, most_ms)
    return RetryRules(tuple(delays))


def attempts_made(headers: Sequence[Header]) -> int:
    """Return the number of retries of a record. ValueError if its headers are invalid."""
    stated = [value for name, value in headers if name == ATTEMPT]
    if not stated:
        return 0
    if len(stated) > 1:
        raise ValueError(f"{ATTEMPT} stands in the headers {len(stated)} times")
    (value,) = stated
    if value is None or not _ATTEMPT.fullmatch(value):
        shown = "null" if value is None else repr(value[:_SHOWN_BYTES])[1:]
        raise ValueError(f"{ATTEMPT} is {shown}, not the number that the broker gave it")
    return int(value)


def is_sent_again(headers: Sequence[Header]) -> bool:
    """Return whether a record has been given back before."""
    return any(name == ATTEMPT for name, _ in headers)


def delay_of(headers: Sequence[Header], rules: RetryRules) -> int | None:
    """Return the delay before the next retry, in milliseconds; None for a dead letter.

    Raises ValueError as `attempts_made` does.
    """
    made = attempts_made(headers)
    return rules.delays_ms[made] if made < rules.most_attempts else None


def given_back(headers: Sequence[Header], created_ms: int) -> tuple[Header, ...]:
    """The headers with which a record that has waited is given back.

    `created_ms` is the timestamp that it was sent with.
    """
    counted = (ATTEMPT, b"%d" % (attempts_made(headers) + 1))
    kept = _kept(headers)
    if all(name != FIRST_TIME for name, _ in kept):
        kept.append((FIRST_TIME, b"%d" % created_ms))
    return (*kept, counted)


def dead_letter(
    headers: Sequence[Header], source: tuple[str, int, int], now_ms: int
) -> tuple[Header, ...]:
    """The headers of a dead letter; `source` is topic, partition and offset in the retry topic.

    A record that was a dead letter before, and put back, loses the headers of that time.
    """
    topic, partition, offset = source
    own = (header for header in _kept(headers) if header[0] not in _OF_DEATH)
    return (
        *own,
        (ATTEMPTS, b"%d" % attempts_made(headers)),
        (DEAD_SOURCE, f"{topic}/{partition}/{offset}".encode()),
        (DEAD_TIME, b"%d" % now_ms),
    )


def _kept(headers: Sequence[Header]) -> list[Header]:
    """Return the client's headers: all but those of delays, deliveries and attempts."""
    return [header for header in headers if header[0] != ATTEMPT and header[0] not in OF_DELAYS]
