"""Leader epochs and their start offsets, in memory and in `leader-epoch-checkpoint` (KIP-101).

Epochs and their start offsets both increase strictly. From them a replica learns where its log
diverges from the leader's after a change of leaders.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from storage.checkpoint_file import decode_integer, decode_lines, encode_lines
from storage.errors import EXHAUSTION, DamagedFileError
from storage.segment import file_names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from storage.disk import Disk

UNDEFINED_EPOCH: Final = -1
UNDEFINED_OFFSET: Final = -1
COLUMNS: Final = 2


class LeaderEpochs:
    """The epochs of one log; every change is written to the file at once.

    If the file cannot be opened for lack of descriptors, it is written later: at the next change
    and before the recovery point moves. Recovery reads epochs past that point from the batches.
    """

    __slots__ = ("_directory", "_disk", "_epochs", "_is_saved", "_is_synced", "_starts", "latest")

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self.latest = UNDEFINED_EPOCH
        """Newest epoch, -1 when there is none."""
        self._is_saved = True
        self._is_synced = True

    def relocate(self, directory: str) -> None:
        """Go on in another directory, and write the file there."""
        self._directory = directory
        self._save()

    @property
    def path(self) -> str:
        """Path of the file."""
        return f"{self._directory}/{file_names.LEADER_EPOCHS}"

    def entries(self) -> list[tuple[int, int]]:
        """Epochs and their start offsets, oldest first."""
        return list(zip(self._epochs, self._starts, strict=True))

    def load(self) -> None:
        """Read the file; DamagedFileError when it is not sound."""
        try:
            data = self._disk.filesystem.read(self.path)
        except FileNotFoundError:
            return
        for line in decode_lines(data):
            columns = line.split()
            if len(columns) != COLUMNS:
                raise DamagedFileError(f"not an epoch and an offset: {line[:80]!r}")
            self._assign(decode_integer(columns[0]), decode_integer(columns[1]))

    def restore(self, entries: Iterable[tuple[int, int]]) -> None:
        """Start with the entries of the file, from `entries`."""
        for epoch, start_offset in entries:
            self._assign(epoch, start_offset)

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that `epoch` begins at `start_offset`; contradicting epochs are dropped."""
        if self._assign(epoch, start_offset):
            self._save()

    def note(self, epoch: int, start_offset: int) -> None:
        """As `assign` for an epoch newer than all, but left for `save_if_changed` to write."""
        if epoch > self.latest and self._assign(epoch, start_offset):
            self._is_saved = False

    @property
    def is_saved(self) -> bool:
        """True if the file has the state in memory."""
        return self._is_saved

    def save_if_changed(self) -> None:
        """Write what `note` noted, and what could not be written before."""
        if not self._is_saved:
            # Without fsync: a crash of the process loses nothing, and after one of the machine
            # recovery reads the epochs of everything past the recovery point from the batches.
            self._disk.filesystem.replace(self.path, self._encode(), sync=False)
            self._is_saved = True
            self._is_synced = False

    def epoch_at(self, offset: int) -> int:
        """Epoch of the record at `offset`; -1 when it lies before all known epochs."""
        slot = bisect_right(self._starts, offset) - 1
        return self._epochs[slot] if slot >= 0 else UNDEFINED_EPOCH

    def end_offset(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Greatest known epoch up to `epoch`, and the offset at which it ends.

        (-1, -1) when `epoch` is newer than all; (`epoch`, start of the first) when older than all.
        """
        if epoch < 0 or not self._epochs or epoch > self._epochs[-1]:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self._epochs[-1]:
            return epoch, log_end_offset
        following = bisect_right(self._epochs, epoch)
        assert self._starts[-1] <= log_end_offset, (self.path, self._starts[-1], log_end_offset)
        if following == 0:
            return epoch, self._starts[0]
        return self._epochs[following - 1], self._starts[following]

    def truncate_from_end(self, end_offset: int) -> None:
        """Drop the epochs that begin at or after `end_offset`."""
        kept = bisect_left(self._starts, end_offset)
        if kept < len(self._starts):
            del self._epochs[kept:], self._starts[kept:]
            self.latest = self._epochs[-1] if self._epochs else UNDEFINED_EPOCH
            self._save()

    def truncate_from_start(self, start_offset: int) -> None:
        """Drop the epochs that end at or before `start_offset`; the first kept begins there."""
        slot = bisect_right(self._starts, start_offset) - 1
        if slot >= 0 and self._starts[slot] != start_offset:
            del self._epochs[:slot], self._starts[:slot]
            self._starts[0] = start_offset
            self._save()
        elif slot > 0:
            del self._epochs[:slot], self._starts[:slot]
            self._save()

    def clear(self) -> None:
        """Drop all."""
        if self._epochs:
            self._epochs.clear()
            self._starts.clear()
            self.latest = UNDEFINED_EPOCH
            self._save()

    def sync(self) -> None:
        """Put the file on the disk for good; safe to call from another thread.

        Its name is safe only when the directory is synced after this.
        """
        if not self._is_synced:
            self._is_synced = True
            try:
                with suppress(FileNotFoundError):
                    self._disk.filesystem.open(self.path).sync()
            except OSError:
                self._is_synced = False
                raise

    def _assign(self, epoch: int, start_offset: int) -> bool:
        epochs, starts = self._epochs, self._starts
        if epoch < 0 or start_offset < 0 or (epochs and epoch == epochs[-1]):
            return False
        while epochs and (epochs[-1] >= epoch or starts[-1] >= start_offset):
            epochs.pop()
            starts.pop()
        epochs.append(epoch)
        starts.append(start_offset)
        self.latest = epoch
        return True

    def _save(self) -> None:
        """Write the file; without a descriptor, that is left to `save_if_changed`."""
        self._is_saved = False
        try:
            self.save_if_changed()
        except OSError as error:
            if error.errno not in EXHAUSTION:
                raise
            self._disk.unsaved_epochs.add(self.path)

    def _encode(self) -> bytes:
        return encode_lines(f"{epoch} {start}" for epoch, start in self.entries())
