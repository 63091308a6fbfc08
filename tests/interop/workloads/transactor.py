"""Writes transactions to several topics alike until it is killed, and says what became of each.

Run as `python -m tests.interop.workloads.transactor '<json of TransactorOptions>'`. Before it
begins a transaction it prints a line with all its records, `{"txn": name, "records": [[partition,
key, value], ...]}`; then `{"txn": name, "state": "committing"}`, and once it knows, `"committed"`
or `"aborted"`. On any error it ends: who runs it starts it again.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import sys
from dataclasses import asdict, dataclass
from itertools import count
from typing import TYPE_CHECKING

from tests.interop.clients.transactional import PRODUCERS
from tests.interop.workloads.copier import PATIENCE_SECONDS

if TYPE_CHECKING:
    from tests.interop.clients.transactional import TransactionalProducer

MOST_RECORDS = 8
KEYS = 6
ABORTED_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class TransactorOptions:
    """Client, identity and target topics of a transactor."""

    client: str
    bootstrap: str
    name: str
    """The transactional id, and what all its keys and values begin with."""

    topics: tuple[str, ...]
    partitions: int

    def to_json(self) -> str:
        """Return what the process takes as its only argument."""
        return json.dumps(asdict(self))


def write(options: TransactorOptions, chance: random.Random) -> None:
    """Write transactions without end."""
    producer: TransactionalProducer = PRODUCERS[options.client](options.bootstrap, options.name)
    life = chance.randrange(10**9)
    for number in count():
        faulthandler.dump_traceback_later(PATIENCE_SECONDS, exit=True)
        name = f"{options.name}:{life}:{number}"
        records = [
            (
                chance.randrange(options.partitions),
                f"{options.name}-{chance.randrange(KEYS)}",
                f"{name}:{index}",
            )
            for index in range(chance.randint(1, MOST_RECORDS))
        ]
        _say({"txn": name, "records": records})
        producer.begin()
        for partition, key, value in records:
            for topic in options.topics:
                producer.send(topic, partition, value.encode(), key.encode())
        if chance.uniform(0, 1) < ABORTED_SHARE:
            producer.flush()
            producer.abort()
            _say({"txn": name, "state": "aborted"})
        else:
            _say({"txn": name, "state": "committing"})
            producer.commit()
            _say({"txn": name, "state": "committed"})


def _say(row: dict[str, object]) -> None:
    os.write(1, json.dumps(row).encode() + b"\n")  # whole, or not at all


def main() -> None:
    """Write until something fails."""
    try:
        write(TransactorOptions(**json.loads(sys.argv[1])), random.Random())
    except Exception as error:  # noqa: BLE001 - told, and then tried again by who runs this
        print(repr(error), file=sys.stderr, flush=True)
    os._exit(1)


if __name__ == "__main__":
    main()
