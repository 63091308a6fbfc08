"""Job: produce synthetic website activity, the same for the same seed.

The events are those of `visits`: heavy-tailed visitors, sessions, pages by a small Markov chain,
referrers, and on request some that come late, have a wrong clock or are malformed. Each is one
record: its visitor as key, JSON as value, the time it was sent as timestamp, and the header `line`.

Running it again adds nothing, and with a greater `--events` adds the rest: a seed's first thousand
events are the same whatever comes behind (see `line_producer`). All options of the stream belong to
its name: with another seed, pace or share the topic must be another, or be deleted before.

With `--rate` it sends at that steady rate, for load tests; an event costs ten to fifteen
microseconds to make, and some more to send. `--pace` is the rate in event time: with a pace of 20
and a rate of 20,000 an hour of event time goes by in four seconds.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if not __package__:  # given as a file: let the imports below find the package
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import spark_jobs.dependency_check  # noqa: F401 - first of all: it says what is not installed

# isort: split
from pydantic import PositiveFloat, PositiveInt  # noqa: TC002 - pydantic reads them

from spark_jobs.errors import exit_code_of
from spark_jobs.kafka.line_producer import Numbered, Outcome, ProducerOptions, produce_stream
from spark_jobs.options import TopicName, parse_options
from spark_jobs.visitors.visits import Site

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME = "produce_activity"


class ActivityProducerOptions(ProducerOptions, Site):
    """Options of the producing job."""

    topic: TopicName = "activity"
    """topic to produce to; created if it does not exist"""

    events: PositiveInt = 100_000
    """number of records in the topic when done, including malformed ones"""

    rate: PositiveFloat | None = None
    """records per second; no limit if not given"""

    def site(self) -> Site:
        """Return the stream that these options choose."""
        return Site(**self.model_dump(include=set(Site.model_fields)))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; return the process's exit code."""
    return exit_code_of(lambda: _run(argv))


def _run(argv: Sequence[str] | None) -> int:
    options = parse_options(ActivityProducerOptions, argv, NAME, __doc__)
    print(f"{NAME}: {produce(options).words()}")
    return 0


def produce(options: ActivityProducerOptions) -> Outcome:
    """Bring the topic to hold so many events; raise `JobError` if any is not delivered."""
    site = options.site()
    lines = itertools.islice(site.lines(), options.events)
    return produce_stream(options, Numbered(site.stream_name, lines, options.events, options.rate))


if __name__ == "__main__":
    sys.exit(main())
