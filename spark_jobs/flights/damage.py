"""Lines as a broken upstream would send them, each with the reason it must be rejected for.

The feed puts such lines between the real flights. Each kind takes a real flight and damages it
in one way. The routing job knows nothing of this module; the expected reasons are what the
tests and the pipeline's last check compare its work with.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

Flight = dict[str, int | str | None]


@dataclass(frozen=True, slots=True)
class Damage:
    """One way in which a line is broken."""

    name: str
    reason: str
    """The reason that the routing job must give."""

    apply: Callable[[Flight], bytes | None]
    """Makes the record's value of a flight."""


def encode(flight: Flight) -> bytes:
    """Return a flight as it is produced: JSON without spaces."""
    return json.dumps(flight, separators=(",", ":")).encode()


def _changed(**changes: object) -> Callable[[Flight], bytes]:
    return lambda flight: json.dumps(flight | changes, separators=(",", ":")).encode()


def _without(key: str) -> Callable[[Flight], bytes]:
    return lambda flight: encode({name: value for name, value in flight.items() if name != key})


DAMAGES = (
    Damage("no value at all", "empty", lambda _flight: None),
    Damage("empty value", "empty", lambda _flight: b""),
    Damage("spaces only", "not-json", lambda _flight: b"   \n"),
    Damage(
        "bytes in Latin-1", "not-utf-8", lambda flight: encode(flight)[:-1] + b',"x":"Z\xfcrich"}'
    ),
    Damage(
        "cut in the middle", "not-json", lambda flight: encode(flight)[: len(encode(flight)) // 2]
    ),
    Damage("last byte lost", "not-json", lambda flight: encode(flight)[:-1]),
    Damage("an error page", "not-json", lambda _flight: b"<html><h1>502 Bad Gateway</h1></html>"),
    Damage(
        "a line of CSV", "not-json", lambda flight: ",".join(map(str, flight.values())).encode()
    ),
    Damage("two on one line", "not-json", lambda flight: encode(flight) * 2),
    Damage("two with a comma", "not-json", lambda flight: encode(flight) + b"," + encode(flight)),
    Damage("something after it", "not-json", lambda flight: encode(flight) + b" EOF"),
    Damage("a bracket after it", "not-json", lambda flight: encode(flight) + b"] []"),
    Damage("NaN for a number", "not-json", _changed(air_time=float("nan"))),
    Damage("the same key twice", "not-json", lambda flight: encode(flight)[:-1] + b',"year":2013}'),
    Damage("a list", "not-an-object", lambda flight: json.dumps(list(flight.values())).encode()),
    Damage("a number", "not-an-object", lambda _flight: b"42"),
    Damage("null", "not-an-object", lambda _flight: b"null"),
    Damage("no distance", "missing-key", _without("distance")),
    Damage("no arrival delay", "missing-key", _without("arr_delay")),
    Damage("no time_hour", "missing-key", _without("time_hour")),
    Damage("carrier is null", "null-value", _changed(carrier=None)),
    Damage("hour is null", "null-value", _changed(hour=None)),
    Damage("number as text", "wrong-type", _changed(distance="1400")),
    Damage("text as number", "wrong-type", _changed(origin=7)),
    Damage("a fraction", "wrong-type", _changed(distance=1400.5)),
    Damage("beyond 64 bits", "wrong-type", _changed(flight=10**20)),
    Damage("an object inside", "wrong-type", _changed(dest={"code": "IAH"})),
    Damage("true for a number", "wrong-type", _changed(month=True)),
    Damage("beyond 32 bits", "impossible-number", _changed(flight=10**12)),
    Damage("negative distance", "impossible-number", _changed(distance=-1)),
    Damage("absurd delay", "impossible-number", _changed(dep_delay=99_999)),
    Damage("unknown airline", "unknown-airline", _changed(carrier="ZZ")),
    Damage("airline in lower case", "unknown-airline", lambda f: encode(f | {"carrier": "ua"})),
    Damage("unknown origin", "unknown-airport", _changed(origin="QQQ")),
    Damage("unknown destination", "unknown-airport", _changed(dest="")),
    Damage("hour 25", "impossible-time", _changed(hour=25)),
    Damage("minute 75 in a time", "impossible-time", _changed(sched_arr_time=1275)),
    Damage("30 February", "impossible-time", _changed(month=2, day=30)),
    Damage("no such instant", "impossible-time", _changed(time_hour="2013-13-45T99:00:00Z")),
    Damage("a century late", "impossible-time", _changed(time_hour="2113-01-01T10:00:00Z")),
    Damage(
        "minute not as scheduled",
        "impossible-time",
        lambda f: encode(f | {"minute": 59 - int(f["minute"] or 0)}),
    ),
    Damage(
        "arrived, never left", "contradiction", _changed(dep_time=None, dep_delay=None, arr_delay=5)
    ),
    Damage("left with no delay", "contradiction", _changed(dep_time=1200, dep_delay=None)),
    Damage(
        "to itself", "contradiction", lambda flight: encode(flight | {"dest": flight["origin"]})
    ),
)
"""All kinds; the feed uses them in turn, so that each occurs about equally often."""
