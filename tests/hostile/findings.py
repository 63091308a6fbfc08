"""Errors found by a run, and the last frames sent before each."""

from __future__ import annotations

import json
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from tests.hostile.frames.frame import Frame

MOST_SHOWN: Final = 3
"""Of one kind; the others are counted."""

MOST_RECENT: Final = 2000
LARGEST_KEPT_BYTES: Final = 65_536


@dataclass(slots=True)
class Findings:
    """Grows while a run goes on; empty if the broker did well. Told as soon as they are found."""

    directory: Path
    """Directory of the last frames sent before a finding."""

    counts: Counter[str] = field(default_factory=Counter)
    _recent: deque[tuple[float, Frame]] = field(default_factory=lambda: deque(maxlen=MOST_RECENT))

    def sent(self, frame: Frame) -> None:
        """Note a frame that is sent now."""
        self._recent.append((time.monotonic(), frame))

    def add(self, kind: str, text: str, frame: Frame | None = None) -> None:
        """Something is wrong; frames sent up to now are saved with the first of each kind."""
        self.counts[kind] += 1
        if self.counts[kind] > MOST_SHOWN:
            return
        place = "" if frame is None else f" (frame {frame.number}, {frame.name})"
        print(f"FOUND {kind}: {text}{place}", flush=True)
        if self.counts[kind] == 1:
            self._save(kind)

    def summary(self) -> str:
        """All that was found, for people; empty if nothing was."""
        if not self.counts:
            return ""
        return "\n".join(f"{count} x {kind}" for kind, count in self.counts.most_common())

    def _save(self, kind: str) -> None:
        now = time.monotonic()
        rows = [
            {
                "number": frame.number,
                "name": frame.name,
                "seconds_before": round(now - at, 3),
                "bytes": frame.data[:LARGEST_KEPT_BYTES].hex(),
                "length": len(frame.data),
            }
            for at, frame in list(self._recent)  # which others go on to add to
        ]
        name = "".join(letter if letter.isalnum() else "-" for letter in kind)
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.directory / f"before-{name}.json"
        path.write_text(json.dumps(rows, indent=1), encoding="utf-8")
        print(f"  the last {len(rows)} frames: {path}", flush=True)
