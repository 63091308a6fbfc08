"""Job: produce the flights of 2013 to a topic, with damaged lines among them.

Every line is one record: key, JSON value, event time as the record's timestamp, and the header
`line` with the feed's name and the line's number. Delivery of each is checked.

Running it again adds nothing: the last record of each partition says how far the feed came, and
only lines beyond are sent. So an interrupted run is completed by the next, without doubles. This
rests on two things: a line's partition depends on its key alone, and an idempotent producer
appends to a partition in order and without gaps.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

if not __package__:  # given as a file: let the imports below find the package
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import spark_jobs.dependency_check  # noqa: F401 - first of all: it says what is not installed

# isort: split
from pydantic import Field

from spark_jobs.errors import exit_code_of
from spark_jobs.flights.flight_feed import Feed
from spark_jobs.kafka.line_producer import (
    Numbered,
    Outcome,
    ProducerOptions,
    partition_of,
    produce_stream,
)
from spark_jobs.options import TopicName, parse_options

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME = "produce_flights"

__all__ = ["NAME", "Outcome", "ProduceOptions", "main", "partition_of", "produce"]


class ProduceOptions(ProducerOptions):
    """Options of the producing job."""

    topic: TopicName = "flights"
    """topic to produce to; created if it does not exist"""

    months: tuple[Annotated[int, Field(ge=1, le=12)], ...] = ()
    """only flights of these months"""

    damaged: Annotated[int, Field(ge=0, le=20_000)] = 300
    """number of damaged lines to put among the flights"""

    def feed(self) -> Feed:
        """Return the feed that these options choose."""
        return Feed(damaged=self.damaged, months=self.months)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; return the process's exit code."""
    return exit_code_of(lambda: _run(argv))


def _run(argv: Sequence[str] | None) -> int:
    options = parse_options(ProduceOptions, argv, NAME, __doc__)
    print(f"{NAME}: {produce(options).words()}")
    return 0


def produce(options: ProduceOptions) -> Outcome:
    """Bring the topic to hold the whole feed; raise `JobError` if any record is not delivered."""
    feed = options.feed()
    flights = feed.flights()
    lines = feed.lines(flights)
    return produce_stream(options, Numbered(feed.name, lines, len(flights) + feed.damaged))


if __name__ == "__main__":
    sys.exit(main())
