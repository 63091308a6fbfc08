"""Made-up visits to a shop on the web: every event, in order, the same for the same seed.

Visitors come as a Poisson process and are drawn by Zipf's law, so that few come often and most
once; one who is on the site, or left it a short while ago, is not drawn again. A visit is a walk
from page to page by a Markov chain, which begins at the page where its referrer leads. How many
pages it has at least follows Pareto's law: most have few, some have hundreds. Between pages lie
seconds; now and then a visitor leaves a page open for half an hour and more, and goes on.

The order of events is that in which a server would get them. On request some come late, up to
hours after their time, some have a clock that is years wrong, and some are malformed
(`visit_damage`); each is one in so many, drawn by a random number of its own.

There is no last event: any number of them begins as any greater number does. Only Python's
`random.random` is used, of which Python promises that a seed's numbers stay the same.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import math
import random
from bisect import bisect
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt

from spark_jobs.flights.damage import Damage
from spark_jobs.flights.flight_feed import Line
from spark_jobs.visitors.visit_damage import DAMAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

SEED = 2026
BEGIN_MS: Final = 1_767_571_200_000
"""5 January 2026, a Monday, 00:00 UTC."""

REST_MS: Final = 35 * 60_000
TRIES: Final = 8
"""How often another visitor is drawn in the place of one who is busy; then a new one comes."""

EXIT: Final = "exit"
CHAIN: Mapping[str, Mapping[str, float]] = {
    "home": {"category": 35, "search": 25, "product": 12, "help": 4, EXIT: 24},
    "category": {"product": 50, "category": 22, "search": 8, "home": 4, EXIT: 16},
    "search": {"product": 48, "search": 22, "category": 8, "help": 2, EXIT: 20},
    "product": {"product": 22, "cart": 14, "category": 18, "search": 10, "home": 4, EXIT: 32},
    "cart": {"checkout": 42, "product": 20, "category": 8, "cart": 6, EXIT: 24},
    "checkout": {"thanks": 62, "cart": 12, "help": 6, EXIT: 20},
    "thanks": {"home": 18, "product": 7, EXIT: 75},
    "help": {"home": 25, "search": 20, "help": 15, EXIT: 40},
}
"""From each kind of page to the next, in percent."""

REFERRERS: Mapping[str, tuple[float, Mapping[str, float]]] = {
    "https://www.google.com/": (40, {"product": 50, "category": 30, "home": 20}),
    "https://duckduckgo.com/": (6, {"product": 50, "category": 30, "home": 20}),
    "https://www.reddit.com/": (9, {"product": 80, "home": 20}),
    "https://mail.example.com/": (10, {"product": 60, "category": 40}),
    "": (35, {"home": 78, "product": 12, "cart": 8, "help": 2}),
}
"""How many in a hundred come from there, and on what page they begin."""

DEVICES = (("desktop", 46), ("mobile", 47), ("tablet", 7))
PRODUCTS, CATEGORIES, TERMS = 500, 12, 60
EVENTS_PER_VISIT = 6.1
"""About, so that the wanted number of events a second is met about."""

LONGEST_LEAST = 400
LEAST_PAGES = tuple(min(int((1 - (n + 0.5) / 1024) ** -0.8), LONGEST_LEAST) for n in range(1024))
"""Least pages of a visit: a Pareto distribution with exponent 1.25, as a table."""

PAUSES_MS = tuple(int(-25_000 * math.log(1 - (n + 0.5) / 1024)) + 400 for n in range(1024))
"""Between two pages: an exponential distribution, as a table."""

LONG_PAUSE, LONG_PAUSE_MS = 0.004, (1_200_000, 6_000_000)
LATE_MS = (30_000, 900_000)
VERY_LATE, VERY_LATE_MS = 0.05, (900_000, 4 * 3_600_000)
SKEW_MS = 10 * 365 * 86_400_000

CLOCK_WRONG = Damage("clock ten years wrong", "clock-skew", lambda _event: None)


@dataclass(slots=True)
class Visit:
    """A visitor who is on the site."""

    visitor: int
    kind: str
    page: str
    referrer: str
    device: str
    least_pages: int
    """It is not left before it has had so many more."""


class Site(BaseModel):
    """Which events: all of it together is the identity of a stream."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    seed: int = SEED
    """of all random numbers"""

    visitors: PositiveInt = 100_000
    """people there are; the one of rank k comes 1/k as often as the first"""

    pace: PositiveFloat = 20.0
    """events per second of event time, about"""

    late: Annotated[float, Field(ge=0, le=1)] = 0.0
    """share of events that come up to 15 minutes late, one in twenty of them up to four hours"""

    skewed: Annotated[float, Field(ge=0, le=1)] = 0.0
    """share of events with a clock that is ten years ahead or behind"""

    malformed: Annotated[float, Field(ge=0, le=1)] = 0.0
    """share of events that are followed by a malformed copy"""

    @property
    def stream_name(self) -> str:
        """Tell streams apart: records of one name and line number are the same record."""
        shares = f"late:{self.late}-skewed:{self.skewed}-malformed:{self.malformed}"
        return f"visits-seed:{self.seed}-visitors:{self.visitors}-pace:{self.pace}-{shares}"

    def lines(self) -> Iterator[Line]:
        """Yield the records to produce, without end."""
        return _lines(self)


def _lines(site: Site) -> Iterator[Line]:
    numbers = itertools.count()
    damages = itertools.cycle(DAMAGES)
    draw = random.Random(f"{site.seed}/malformed").random  # noqa: S311 - not for secrets
    for key, event, sent_ms, damage in _sent(site):
        value = _encoded(event)
        yield Line(next(numbers), key, value, sent_ms, damage)
        if site.malformed and draw() < site.malformed:
            kind = next(damages)
            yield Line(next(numbers), key, kind.apply(dict(event)), sent_ms, kind)


Event = dict[str, int | str | None]
Sent = tuple[bytes, Event, int, Damage | None]


def _sent(site: Site) -> Iterator[Sent]:
    """Yield events in the order in which they are sent."""
    if not site.late and not site.skewed:
        for at_ms, event in _events(site):
            yield str(event["visitor"]).encode(), event, at_ms, None
        return
    draw = random.Random(f"{site.seed}/delays").random  # noqa: S311 - not for secrets
    held: list[tuple[int, int, Event]] = []
    for number, (at_ms, event) in enumerate(_events(site)):
        while held and held[0][0] <= at_ms:
            sent_ms, _, late = heapq.heappop(held)
            yield str(late["visitor"]).encode(), late, sent_ms, None
        key = str(event["visitor"]).encode()
        chance = draw()
        if chance < site.late:
            span = VERY_LATE_MS if draw() < VERY_LATE else LATE_MS
            heapq.heappush(held, (at_ms + _between(span, draw()), number, event))
        elif chance < site.late + site.skewed:
            shift = SKEW_MS if draw() < 0.5 else -SKEW_MS  # noqa: PLR2004 - heads or tails
            yield key, event | {"at": instant(at_ms + shift)}, at_ms, CLOCK_WRONG
        else:
            yield key, event, at_ms, None


def _events(site: Site) -> Iterator[tuple[int, Event]]:
    """Yield events with their times, in the order of these."""
    draw = random.Random(site.seed).random  # noqa: S311 - not for secrets
    people = _People(site.visitors, draw)
    visits: list[tuple[int, int, Visit]] = []
    mean_ms = 1000 * EVENTS_PER_VISIT / site.pace
    arrival = float(BEGIN_MS)
    ids, ties = itertools.count(1), itertools.count()
    while True:
        arrival -= mean_ms * math.log(1.0 - draw())
        while visits and visits[0][0] <= arrival:
            at_ms, tie, visit = visits[0]
            yield at_ms, _event(next(ids), at_ms, visit, draw)
            if _goes_on(visit, draw):
                heapq.heapreplace(visits, (at_ms + _pause(draw), tie, visit))
            else:
                heapq.heappop(visits)
                people.rest(visit.visitor, at_ms)
        visitor = people.come(int(arrival))
        heapq.heappush(visits, (int(arrival), next(ties), _begun(visitor, draw)))


class _People:
    """Who comes next."""

    def __init__(self, number: int, draw: Callable[[], float]) -> None:
        self._weights = list(itertools.accumulate(1 / k for k in range(1, number + 1)))
        self._draw = draw
        self._busy_until: dict[int, float] = {}
        self._newcomers = itertools.count(number + 1)

    def come(self, now_ms: int) -> int:
        """Return a visitor, who is busy from now on."""
        weights, busy = self._weights, self._busy_until
        for _ in range(TRIES):
            visitor = bisect(weights, self._draw() * weights[-1]) + 1
            if busy.get(visitor, 0) <= now_ms:
                break
        else:
            visitor = next(self._newcomers)
        busy[visitor] = math.inf
        return visitor

    def rest(self, visitor: int, now_ms: int) -> None:
        """Note that a visitor has left."""
        self._busy_until[visitor] = now_ms + REST_MS


def _begun(visitor: int, draw: Callable[[], float]) -> Visit:
    referrer = _chosen(_REFERRERS, draw())
    kind = _chosen(_ENTRIES[referrer], draw())
    least_pages = LEAST_PAGES[int(draw() * 1024)]
    return Visit(visitor, kind, _page(kind, draw), referrer, _chosen(_DEVICES, draw()), least_pages)


def _goes_on(visit: Visit, draw: Callable[[], float]) -> bool:
    kind = _chosen(_NEXT[visit.kind], draw())
    visit.least_pages -= 1
    if kind == EXIT:
        if visit.least_pages <= 0:
            return False
        kind = "home"
    visit.referrer, visit.kind, visit.page = visit.page, kind, _page(kind, draw)
    return True


def _page(kind: str, draw: Callable[[], float]) -> str:
    if kind == "product":
        return f"/product/{_chosen(_PRODUCTS, draw())}"
    if kind == "category":
        return f"/category/{_chosen(_CATEGORIES, draw())}"
    if kind == "search":
        return f"/search?q={_chosen(_TERMS, draw())}"
    return "/" if kind == "home" else f"/{kind}"


def _event(number: int, at_ms: int, visit: Visit, draw: Callable[[], float]) -> Event:
    return {
        "id": number,
        "at": instant(at_ms),
        "visitor": f"v{visit.visitor:06d}",
        "page": visit.page,
        "referrer": visit.referrer or None,
        "device": visit.device,
        "load_ms": PAUSES_MS[int(draw() * 1024)] // 50,
    }


def _encoded(event: Event) -> bytes:
    """Return the event as JSON; none of its texts has a character to escape."""
    referrer = event["referrer"]
    quoted = "null" if referrer is None else f'"{referrer}"'
    return (
        f'{{"id":{event["id"]},"at":"{event["at"]}","visitor":"{event["visitor"]}",'
        f'"page":"{event["page"]}","referrer":{quoted},"device":"{event["device"]}",'
        f'"load_ms":{event["load_ms"]}}}'
    ).encode()


def instant(at_ms: int) -> str:
    """Return an instant as text, with milliseconds."""
    return f"{_second(at_ms // 1000)}.{at_ms % 1000:03d}Z"


@functools.lru_cache(maxsize=4096)
def _second(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _pause(draw: Callable[[], float]) -> int:
    if draw() < LONG_PAUSE:
        return _between(LONG_PAUSE_MS, draw())
    return PAUSES_MS[int(draw() * 1024)]


def _between(span: tuple[int, int], drawn: float) -> int:
    return span[0] + int(drawn * (span[1] - span[0]))


Choice = tuple[list[str], list[float]]
"""Names, and their weights summed up, the sum of all being 1."""


def _chosen(choice: Choice, drawn: float) -> str:
    return choice[0][bisect(choice[1], drawn)]


def _choice(weights: Mapping[str, float]) -> Choice:
    total = sum(weights.values())
    sums = [weight / total for weight in itertools.accumulate(weights.values())]
    return list(weights), [*sums[:-1], 1.0]


def _zipf(number: int) -> Choice:
    return _choice({str(k): 1 / k for k in range(1, number + 1)})


_NEXT = {kind: _choice(weights) for kind, weights in CHAIN.items()}
_REFERRERS = _choice({name: weight for name, (weight, _) in REFERRERS.items()})
_ENTRIES = {name: _choice(pages) for name, (_, pages) in REFERRERS.items()}
_DEVICES = _choice(dict(DEVICES))
_PRODUCTS, _CATEGORIES, _TERMS = _zipf(PRODUCTS), _zipf(CATEGORIES), _zipf(TERMS)
