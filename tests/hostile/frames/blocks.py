"""Frames as they are sent: thirty-two of them a block, delivered in one manner.

Frames that follow each other up to a damaged one are a run: written together, and answered before
the next run is written. A damaged frame may end its connection, and what stood behind it would
never be read.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final

from tests.hostile.frames.frame import make_frame

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.hostile.frames.frame import Frame
    from tests.hostile.frames.names import Identifiers

FRAMES: Final = 32


class Manner(enum.Enum):
    """Way in which the frames of a block are sent, and their connections end."""

    SINGLY = "each frame when the one before was answered"
    TOGETHER = "frames up to a damaged one in one write"
    PIPELINE = "all frames in one write, none damaged but the last"
    DRIBBLE = "byte by byte"
    RESET = "reset with the first bytes of an answer"
    HALF_CLOSE = "the sending side closed before the answers come"
    LEAVE = "closed as soon as it is sent"


_MANNERS: Final = (
    *(Manner.SINGLY,) * 6,
    *(Manner.TOGETHER,) * 6,
    *(Manner.PIPELINE,) * 3,
    *(Manner.DRIBBLE, Manner.RESET, Manner.RESET, Manner.HALF_CLOSE, Manner.LEAVE),
)


@dataclass(frozen=True, slots=True)
class Block:
    """Neighbouring frames of a run of the whole programme; made when they are sent."""

    seed: int
    number: int
    numbers: range
    """Numbers of the wanted frames: all, except at the ends of a range."""

    @property
    def manner(self) -> Manner:
        """Return the block's way of sending."""
        return Random(f"{self.seed}/block/{self.number}").choice(_MANNERS)

    def runs(self, known: Identifiers) -> Iterator[list[Frame]]:
        """Yield the frames of each write; a frame is made when its run is asked for.

        Frames that would harm lawfully are in runs of their own, to be counted and not sent.
        """
        manner = self.manner
        is_pipeline = manner is Manner.PIPELINE
        run: list[Frame] = []
        for number in self.numbers:
            is_last = number % FRAMES == FRAMES - 1
            frame = make_frame(self.seed, number, known, is_sound=is_pipeline and not is_last)
            if frame.harm:
                yield [frame]
                continue
            run.append(frame)
            if manner is Manner.SINGLY or (frame.is_damaged and not is_pipeline):
                yield run
                run = []
        if run:
            yield run


def blocks(seed: int, numbers: range) -> Iterator[Block]:
    """The blocks that hold the frames of these numbers, in order."""
    for number in range(numbers.start // FRAMES, -(-numbers.stop // FRAMES)):
        start = max(numbers.start, number * FRAMES)
        stop = min(numbers.stop, (number + 1) * FRAMES)
        yield Block(seed, number, range(start, stop))


def joined(frames: Sequence[Frame]) -> bytes:
    """Return the bytes of a run."""
    return b"".join(frame.data for frame in frames)
