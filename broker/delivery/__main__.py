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
    FailedError,
    UnavailableError,
    add_options,
    ask,
    asked_from,
    at_least_one,
)
from broker.http.endpoints_in_turn import EXIT_FAILED, EXIT_OK, EndpointsInTurn
from config.machine.own_program import usage_name

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_LIMIT: Final = 100
EVERYTHING: Final = (1 << 31) - 1
MISDIRECTED: Final = 421
CONFLICT: Final = 409


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
    waits = _waits(options)
    for _, record in waits.records(options.limit):
        _say(record)
    return waits.tell("asked for")


def _cancel_id(options: argparse.Namespace) -> int:
    """Cancel all records with the id; one delivered meanwhile is reported, the rest goes on."""
    waits, is_done, code = _waits(options), False, EXIT_OK
    for endpoint, record in list(waits.records(EVERYTHING)):
        is_done = True
        try:
            _say(_cancel(options, endpoint, record["partition"], record["offset"]))
        except FailedError as error:
            if error.status != CONFLICT:
                raise
            sys.stderr.write(f"{error}\n")
            code = EXIT_FAILED
    code = max(code, waits.tell("asked for"))
    if not is_done and code == EXIT_OK:
        raise FailedError(f"no record with the id {options.id} waits in {options.topic}")
    return code


def _cancel_place(options: argparse.Namespace) -> int:
    """Cancel one record at the endpoint that leads its partition."""
    others = []
    for endpoint in _waits(options).urls:
        try:
            _say(_cancel(options, endpoint, options.partition, options.offset))
        except FailedError as error:
            if error.status != MISDIRECTED and not isinstance(error, UnavailableError):
                raise
            others.append(str(error))
        else:
            return EXIT_OK
    place = f"{options.topic}-{options.partition}"
    raise FailedError("\n".join((f"no endpoint that can be reached leads {place}:", *others)))


def _waits(options: argparse.Namespace) -> EndpointsInTurn:
    """Waiting records, over all endpoints."""

    def page(endpoint: str, limit: int, start: str | None) -> dict[str, Any]:
        given = {
            "topic": options.topic,
            "partition": options.partition,
            "id": options.id,
            "limit": limit,
            "start": start,
        }
        return ask(asked_from(endpoint, options), "/waiting", given)

    return EndpointsInTurn(options, page)


def _cancel(
    options: argparse.Namespace, endpoint: str, partition: int, offset: int
) -> dict[str, Any]:
    place = {"topic": options.topic, "partition": partition, "offset": offset}
    return ask(asked_from(endpoint, options), "/waiting/cancel", place, "POST")


def _say(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")


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
