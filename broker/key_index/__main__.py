"""Command line: `python -m broker.key_index --topic orders --key 4711 [--from …] [--to …]`.

Asks the endpoints of one or several brokers and writes each record on a line of its own, as JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from broker.http.client import (
    FailedError,
    add_options,
    ask,
    asked_from,
    at_least_one,
)
from broker.http.endpoints_in_turn import EXIT_FAILED, EndpointsInTurn
from config.machine.own_program import usage_name

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_LIMIT: Final = 100


def main(arguments: Sequence[str] | None = None) -> int:
    """Look records up; returns the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if all(given is None for given in (options.key, options.key_base64, options.id)):
        parser.error("--key, --key-base64 or --id is missing")
    found = EndpointsInTurn(options, partial(_page, options))
    try:
        for _, record in found.records(options.limit):
            sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")
    except FailedError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_FAILED
    return found.tell("searched")


def _page(
    options: argparse.Namespace, endpoint: str, limit: int, start: str | None
) -> dict[str, Any]:
    """One answer. Raises FailedError."""
    given = {
        "topic": options.topic,
        "key": options.key,
        "key.base64": options.key_base64,
        "id": options.id,
        "from": options.from_time,
        "to": options.to_time,
        "partition": options.partition,
        "isolation": options.isolation,
        "limit": limit,
        "start": start,
    }
    return ask(asked_from(endpoint, options), "/records", given)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=usage_name("broker.key_index"), description=__doc__)
    add = parser.add_argument
    add("--topic", required=True)
    add("--key")
    add("--key-base64", help="a key that is no text")
    add("--id", help="what the header message-id holds")
    add("--from", dest="from_time", help="earliest timestamp: milliseconds, or ISO 8601")
    add("--to", dest="to_time", help="latest timestamp")
    add("--partition", type=int)
    add("--limit", type=at_least_one, default=DEFAULT_LIMIT, help="most records (100)")
    add("--isolation", choices=("read_committed", "read_uncommitted"))
    add_options(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
