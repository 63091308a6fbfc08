"""Copies a topic into another one exactly once; a process of its own, so that it can be killed.

Run as `python -m tests.interop.workloads.copier '<json of CopierOptions>'`. It reads from its
group's offsets up to the end that the source has when it starts, a few records per transaction, and
commits their offsets with them; every `ABORT_EVERY`-th transaction is aborted and done again. It
ends with 0 when all is copied. On any error it just ends: who runs it starts it again.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from tests.interop.clients.reading import READERS
from tests.interop.clients.transactional import PRODUCERS

if TYPE_CHECKING:
    from tests.interop.clients.reading import Read, Reader
    from tests.interop.clients.transactional import TransactionalProducer

RECORDS_PER_TRANSACTION = 20
ABORT_EVERY = 7
PATIENCE_SECONDS = 30.0
"""A transaction that takes longer has a client that hangs: when the broker dies at a bad moment,
librdkafka 2.16.1 never sends offsets again, and kafka-python 3.0.12 never a transaction's end.
"""


@dataclass(frozen=True, slots=True)
class CopierOptions:
    """Source, target and client of a copier."""

    client: str
    bootstrap: str
    source: str
    target: str
    name: str
    """The transactional id and the group."""

    def to_json(self) -> str:
        """Return what the process takes as its only argument."""
        return json.dumps(asdict(self))


def copy(options: CopierOptions) -> None:
    """Copy until the group's offsets are at the end."""
    producer: TransactionalProducer = PRODUCERS[options.client](options.bootstrap, options.name)
    # Only now: what the predecessor left open is ended, so its offsets are what they stay.
    reader: Reader = READERS[options.client](options.bootstrap, options.source, options.name)
    ends = reader.ends()
    number = 0
    while reader.positions() != ends:
        faulthandler.dump_traceback_later(PATIENCE_SECONDS, exit=True)
        records = reader.poll(RECORDS_PER_TRANSACTION)
        if records:
            number += 1
            _copy(options, producer, reader, records)
            if number % ABORT_EVERY == 0:
                producer.abort()
                reader.seek(_first(records) | _others(reader, records))
            else:
                producer.commit()


def _copy(
    options: CopierOptions, producer: TransactionalProducer, reader: Reader, records: list[Read]
) -> None:
    producer.begin()
    for partition, _, value in records:
        producer.send(options.target, partition, value)
    positions = reader.positions()
    moved = {partition: positions[partition] for partition in _first(records)}
    producer.send_offsets(options.source, moved, reader)


def _first(records: list[Read]) -> dict[int, int]:
    return {partition: offset for partition, offset, _ in reversed(records)}


def _others(reader: Reader, records: list[Read]) -> dict[int, int]:
    moved = _first(records)
    return {one: at for one, at in reader.positions().items() if one not in moved}


def main() -> None:
    """Copy, and end at once: a client that is let go of may wait for a broker that is gone."""
    try:
        copy(CopierOptions(**json.loads(sys.argv[1])))
    except Exception as error:  # noqa: BLE001 - told, and then tried again by who runs this
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main()
