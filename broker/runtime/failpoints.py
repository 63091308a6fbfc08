"""Steps of coordinators at which a test can have the broker killed; without effect in production.

The state after a crash between two steps can only be tested by such a crash. With
`BROKER_FAILPOINT=PrepareCommit` in its environment a broker kills itself, as SIGKILL does, when a
transaction has been decided and none of its markers is written; `BROKER_FAILPOINT=PrepareCommit:3`
lets two pass before. The steps of a transaction, in their order:

    Empty                           the record of a new epoch is in the log
    Ongoing                         the record of added partitions is in the log
    PrepareCommit, PrepareAbort     the record of the decision is in the log
    SomeMarked                      one partition of several has its marker
    AllMarked                       all partitions have
    CompleteCommit, CompleteAbort   the record that says so is in the log

Those of groups and of share state are the kinds of their records, as `coordinator.records.step_of`
and `coordinator.share_state.records.step_of` name them: `ConsumerGroupTargetAssignmentMember`,
`GroupMetadataTombstone`, `ShareUpdate`. The changes of a request are one batch, so that a group
that turns from one protocol to the other dies at one moment, whichever of its records is named.

A step in the log has not been answered, and earlier answers may not have been sent.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

VARIABLE: Final = "BROKER_FAILPOINT"

SOME_MARKED: Final = "SomeMarked"
ALL_MARKED: Final = "AllMarked"


def armed(environment: Mapping[str, str]) -> Callable[[str], None] | None:
    """Function to call at each step; None (always, but in tests) if no step is to fail."""
    wanted = environment.get(VARIABLE)
    if not wanted:
        return None
    name, _, count = wanted.partition(":")
    left = int(count or "1")

    def reached(step: str) -> None:
        nonlocal left
        if step == name:
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    return reached
