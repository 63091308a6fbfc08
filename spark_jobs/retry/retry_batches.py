"""Which records are due, and batches of them that are written once although a run was killed.

Spark's own streams read a topic to its end, and cannot leave what is not due yet. So batches are
planned here: a retry topic is stamped by the broker when it takes a record, so the due ones are
those before an offset, which the broker finds by time. Below the checkpoint lies

    offsets/7    batch 7 as it was planned: offsets to read, and where the topics that are
                 written to ended before it
    commits/7    all of it is written

A batch that was planned and not committed is done again, less what is found behind those ends: so
each record is written once. What Spark's executors still send when their driver is gone comes
within seconds at most; on a cluster whose executors outlive it, that is the limit of this.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from spark_jobs.errors import BadOptionError, JobError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

KEPT = 100
"""Batches whose files are kept, for a person to look at."""

Ends = dict[str, dict[int, int]]
"""Offsets by topic and partition."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What is read in one go."""

    number: int
    starting: Ends
    ending: Ends
    """Offsets to stop before; both are of every partition of every topic that is read."""

    outputs: Ends
    """Where the topics that are written to ended before."""

    @property
    def rows(self) -> int:
        """How many offsets it has."""
        ends = (end for partitions in self.ending.values() for end in partitions.values())
        begins = (start for partitions in self.starting.values() for start in partitions.values())
        return sum(ends) - sum(begins)

    def topics(self) -> list[str]:
        """Return the topics of which it has anything."""
        return [topic for topic, ends in self.ending.items() if ends != self.starting[topic]]


class Journal:
    """The batches that were planned and committed, in files."""

    def __init__(self, directory: Path) -> None:
        self._offsets, self._commits = directory / "offsets", directory / "commits"
        for path in (self._offsets, self._commits):
            path.mkdir(parents=True, exist_ok=True)

    def last(self) -> Batch | None:
        """Return the last batch that was planned, if there is one."""
        numbers = _numbers(self._offsets)
        if not numbers:
            return None
        path = self._offsets / str(numbers[-1])
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            ends = {name: _by_number(found[name]) for name in ("starting", "ending", "outputs")}
        except (ValueError, KeyError, AttributeError) as error:
            raise BadOptionError(f"--checkpoint: {path} is damaged: {error}") from error
        return Batch(numbers[-1], **ends)

    def is_committed(self, batch: Batch) -> bool:
        """Say whether all of a batch is written."""
        return (self._commits / str(batch.number)).exists()

    def plan(self, batch: Batch) -> None:
        """Note a batch before anything of it is written."""
        _write(self._offsets / str(batch.number), json.dumps(asdict(batch)))

    def commit(self, batch: Batch) -> None:
        """Note that all of a batch is written."""
        _write(self._commits / str(batch.number), "{}")
        for directory in (self._offsets, self._commits):
            for number in _numbers(directory)[:-KEPT]:
                (directory / str(number)).unlink()


def next_batch(
    last: Batch | None, first: Ends, due: Ends, outputs: Ends, *, may_lose: bool = False
) -> Batch:
    """Return the batch after `last`: what is due and was in none before.

    `first` are the offsets of the first records there are; `due` those behind the last ones due.
    Raises `JobError` when records are gone that were in no batch; with `may_lose`, begins behind
    them (`lost_between`).
    """
    starting: Ends = {}
    for topic, partitions in due.items():
        reached = last.ending.get(topic, {}) if last is not None else {}
        starting[topic] = {
            number: reached.get(number, first[topic][number]) for number in partitions
        }
        for number, offset in starting[topic].items():
            begin, end = first[topic][number], partitions[number]
            if may_lose:  # what is due was asked for before where the topic begins
                starting[topic][number] = max(offset, min(begin, end))
                begin = min(offset, begin)
            _require_there(topic, number, offset, (begin, end))
    number = last.number + 1 if last is not None else 0
    return Batch(number, starting, due, outputs)


def lost_between(last: Batch | None, batch: Batch) -> Iterator[tuple[str, int, int]]:
    """Yield partition, first offset and the one behind, of records that were in neither batch."""
    for topic, partitions in (last.ending if last is not None else {}).items():
        for number, end in partitions.items():
            begin = batch.starting.get(topic, {}).get(number, end)
            if begin > end:
                yield f"{topic}-{number}", end, begin


def _require_there(topic: str, partition: int, offset: int, there: tuple[int, int]) -> None:
    first, end = there
    if offset < first:
        raise JobError(
            f"{topic}-{partition} begins at offset {first}: the records from {offset} on are gone, "
            "by retention or because they were deleted. Go on without them: --on-data-loss record"
        )
    if offset > end:
        raise JobError(
            f"{topic}-{partition} ends at offset {end}, the checkpoint remembers {offset}: it was "
            "deleted or truncated, or the checkpoint is of another broker. Use another --checkpoint"
        )


def limited(batch: Batch, most: int | None) -> Batch:
    """Return the batch with at most about `most` records, the same share of each partition."""
    if most is None or batch.rows <= most:
        return batch
    partitions = [(t, p) for t in batch.topics() for p in batch.ending[t]]
    share = max(most // len(partitions), 1)
    ending = {
        topic: {
            number: min(end, batch.starting[topic][number] + share) for number, end in ends.items()
        }
        for topic, ends in batch.ending.items()
    }
    return Batch(batch.number, batch.starting, ending, batch.outputs)


def ends_of(topics: Sequence[str], ask: Callable[[str], dict[int, int]]) -> Ends:
    """Return what `ask` says of each topic."""
    return {topic: ask(topic) for topic in topics}


def _numbers(directory: Path) -> list[int]:
    return sorted(int(path.name) for path in directory.iterdir() if path.name.isdigit())


def _by_number(found: Mapping[str, Mapping[str, int]]) -> Ends:
    return {
        topic: {int(number): offset for number, offset in partitions.items()}
        for topic, partitions in found.items()
    }


def _write(path: Path, text: str) -> None:
    unfinished = path.with_name(f"{path.name}.new")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)
