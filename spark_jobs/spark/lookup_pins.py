"""Which version of a table each batch sees: noted before the batch begins, and kept.

    DIRECTORY/
        pins/17.json     batch 17 sees version 12: the topic up to these offsets
        version-12/      the table, as it was when batch 12 began and had last changed

Only the last batch can come again, so earlier pins are of no use once the next one is there, nor
are versions that no pin names.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from spark_jobs.errors import JobError

if TYPE_CHECKING:
    from pathlib import Path

PREFIX = "version-"


@dataclass(frozen=True, slots=True)
class Pin:
    """What a batch sees of the table."""

    batch: int
    version: int
    """Number of the batch that the version was made for."""

    topic_id: str
    offsets: dict[int, int]
    """By partition, where the version ends in the topic; that offset is not in it."""


class Pins:
    """The pins of one query, in a directory that survives it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._pins = directory / "pins"
        self._pins.mkdir(parents=True, exist_ok=True)

    def version_directory(self, version: int) -> Path:
        """Return where a version is, or will be."""
        return self._directory / f"{PREFIX}{version}"

    def find(self, batch: int) -> Pin | None:
        """Return the pin of a batch, None when it has none yet."""
        path = self._path(batch)
        if not path.exists():
            return None
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            offsets = {int(partition): end for partition, end in found.pop("offsets").items()}
            return Pin(**found, offsets=offsets)
        except (ValueError, TypeError, KeyError) as error:
            raise JobError(f"--checkpoint: {path} is damaged: {error}") from error

    def last_before(self, batch: int) -> Pin | None:
        """Return the latest pin of earlier batches."""
        earlier = [number for number in self._batches() if number < batch]
        return self.find(max(earlier)) if earlier else None

    def add(self, pin: Pin) -> None:
        """Note a pin for good, and remove what no batch can need any more."""
        path = self._path(pin.batch)
        unfinished = path.with_suffix(".new")
        with unfinished.open("w", encoding="utf-8") as file:
            json.dump(asdict(pin), file)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
        self._forget_all_but(pin)

    def _forget_all_but(self, pin: Pin) -> None:
        for batch in self._batches():
            if batch != pin.batch:
                self._path(batch).unlink()
        for path in self._directory.glob(f"{PREFIX}*"):
            if path != self.version_directory(pin.version):
                shutil.rmtree(path)

    def _batches(self) -> list[int]:
        return [int(path.stem) for path in self._pins.glob("*.json")]

    def _path(self, batch: int) -> Path:
        return self._pins / f"{batch}.json"
