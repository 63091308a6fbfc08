"""Command line: `python -m broker.delivery list --topic reminders`, and `cancel`.

    list     what waits in a topic, in the order in which it is due in each partition: a line of
             JSON for each record
    cancel   one record by its place (--partition, --offset), or all that have an id (--id)

Both ask the look-up endpoints of brokers (`key.index.port`).
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any, Final

from broker.http.client import (
    DEFAULT_ENDPOINT,
    FailedError,
    add_options,
    ask,
    asked_from,
    at_least_one,
)
from config.machine.own_program import usage_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

EXIT_OK, EXIT_FAILED = 0, 1
DEFAULT_LIMIT: Final = 100
EVERYTHING: Final = (1 << 31) - 1
MISDIRECTED: Final = 421


class Waits:
    """What waits, by the endpoints that are asked."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self.unasked: dict[int, int] = {}
        """Partitions that no endpoint leads, with their leaders; known once all were asked."""

    def records(self, limit: int) -> Iterator[tuple[str, dict[str, Any]]]:
        """Each record and the endpoint that knows of it. Raises FailedError."""
        left, unasked = limit, None
        for endpoint in self._options.endpoint or [DEFAULT_ENDPOINT]:
            start: str | None = None
            while left > 0:
                page = self._page(endpoint, left, start)
                for record in page["records"]:
                    yield endpoint, record
                left -= len(page["records"])
                start = page["next"]
                if start is None:
                    elsewhere = dict(page["led_elsewhere"])
                    known = elsewhere if unasked is None else unasked
                    unasked = {one: known[one] for one in known.keys() & elsewhere.keys()}
                    break
        self.unasked = unasked or {}

    def _page(self, endpoint: str, limit: int, start: str | None) -> dict[str, Any]:
        options = self._options
        given = {
            "topic": options.topic,
            "partition": options.partition,
            "id": options.id,
            "limit": limit,
            "start": start,
        }
        return ask(asked_from(endpoint, options), "/waiting", given)


def main(arguments: Sequence[str] | None = None) -> int:
    """List or cancel; returns the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.what == "cancel" and (options.offset is None) == (options.id is None):
        parser.error("cancel takes --offset or --id")
    if options.offset is not None and options.partition is None:
        parser.error("--offset takes --partition")
    try:
        if options.what == "list":
            return _list(options)
        return _cancel_place(options) if options.id is None else _cancel_id(options)
    except FailedError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_FAILED


def _list(options: argparse.Namespace) -> int:
    waits = Waits(options)
    for _, record in waits.records(options.limit):
        _say(record)
    return _told(waits)


def _cancel_id(options: argparse.Namespace) -> int:
    """Cancel all that have the id; what is delivered meanwhile was not to be caught any more."""
    waits, cancelled = Waits(options), 0
    for endpoint, record in list(waits.records(EVERYTHING)):
        _say(_cancel(options, endpoint, record["partition"], record["offset"]))
        cancelled += 1
    code = _told(waits)
    if not cancelled and code == EXIT_OK:
        raise FailedError(f"no record with the id {options.id} waits in {options.topic}")
    return code


def _cancel_place(options: argparse.Namespace) -> int:
    """Cancel one record at the endpoint that leads its partition."""
    endpoints = options.endpoint or [DEFAULT_ENDPOINT]
    for endpoint in endpoints:
        try:
            _say(_cancel(options, endpoint, options.partition, options.offset))
        except FailedError as error:
            if error.status != MISDIRECTED or endpoint == endpoints[-1]:
                raise
        else:
            break
    return EXIT_OK


def _cancel(
    options: argparse.Namespace, endpoint: str, partition: int, offset: int
) -> dict[str, Any]:
    place = {"topic": options.topic, "partition": partition, "offset": offset}
    return ask(asked_from(endpoint, options), "/waiting/cancel", place, "POST")


def _say(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")


def _told(waits: Waits) -> int:
    """Say which partitions were not asked for; returns the exit code."""
    for partition, leader in sorted(waits.unasked.items()):
        led = f"led by broker {leader}" if leader >= 0 else "without a leader"
        sys.stderr.write(f"partition {partition} was not asked for: it is {led}\n")
    return EXIT_FAILED if waits.unasked else EXIT_OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=usage_name("broker.delivery"),
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("what", choices=("list", "cancel"))
    add("--topic", required=True)
    add("--partition", type=int)
    add("--offset", type=int, help="where the record waits: what its producer was told")
    add("--id", help="what the header message-id holds")
    add("--limit", type=at_least_one, default=DEFAULT_LIMIT, help="most records in a list (100)")
    add_options(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
