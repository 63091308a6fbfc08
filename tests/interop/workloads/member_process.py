"""The test's side of a group member: starts it, follows what it prints, stops or kills it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

from tests.support.jars import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.interop.workloads.member import MemberOptions

WAIT_SECONDS = 120.0
LEAVE_SECONDS = 120.0
POLL_SECONDS = 0.02


class MemberProcess:
    """A running member; its assignment and records are those it printed so far."""

    def __init__(self, options: MemberOptions) -> None:
        self.options = options
        self.assigned: list[int] = []
        self.assignments: list[list[int]] = []
        self.records: list[tuple[int, int]] = []
        self._errors: list[str] = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.interop.workloads.member", options.to_json()],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
        )
        self._readers = [
            threading.Thread(target=self._follow_output),
            threading.Thread(target=self._follow_errors),
        ]
        for reader in self._readers:
            reader.start()

    def leave(self) -> None:
        """Ask it to leave the group cleanly, and wait until it ended."""
        self._process.terminate()
        code = self._process.wait(LEAVE_SECONDS)
        self._finish()
        assert code == 0, f"member ended with {code}: {self.errors()}"

    def kill(self) -> None:
        """Kill it, if it still runs, so that it sends nothing to the broker; close its pipes."""
        self._process.kill()
        self._process.wait()
        self._finish()

    def errors(self) -> str:
        """Return the end of what it wrote to standard error."""
        return "".join(self._errors[-30:])

    def _finish(self) -> None:
        for reader in self._readers:
            reader.join()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def _follow_output(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            row = json.loads(line)
            if "assigned" in row:
                self.assigned = row["assigned"]
                self.assignments.append(row["assigned"])
            else:
                partition, offset = row["record"]
                self.records.append((partition, offset))

    def _follow_errors(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._errors.append(line)


def wait_until(
    condition: Callable[[], bool],
    members: Sequence[MemberProcess],
    missing: Callable[[], object] = lambda: "",
) -> float:
    """Wait until `condition` holds; return the seconds, or fail with what the members hold."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > WAIT_SECONDS:
            held = [(member.assignments, member.errors()) for member in members]
            raise TimeoutError(f"the group did not get there: {held} {missing()}")
        time.sleep(POLL_SECONDS)
    return time.monotonic() - began


def wait_until_shared(members: Sequence[MemberProcess], partitions: int) -> float:
    """Wait until every partition belongs to exactly one member, and all to equally many."""
    share = partitions // len(members)

    def is_shared() -> bool:
        held = sorted(partition for member in members for partition in member.assigned)
        even = all(len(member.assigned) == share for member in members)
        return even and held == list(range(partitions))

    return wait_until(is_shared, members)
