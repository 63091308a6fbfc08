"""Commands for a running node."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from broker.metrics.status_socket import STATUS, ask
from broker.node.member_lock import holder
from broker.node.rolling_restart import Progress
from broker.node.supervisor import EXIT_OK, RESTART

if TYPE_CHECKING:
    from broker.node.plan import NodePlan

EXIT_FAILED: Final = 1
ANSWER_SECONDS: Final = 10.0
PATIENCE_SECONDS: Final = 60.0
"""Time for which a supervisor may be unreachable, as while it restarts."""
POLL_SECONDS: Final = 0.2


def show_status(plan: NodePlan) -> int:
    """Print the state of each broker; fails if one does not serve, or the supervisor is down."""
    try:
        status = _status(plan)
    except (OSError, ValueError) as error:
        return _failed(f"{plan.socket}: no supervisor answers: {error}")
    restart = status["restart"]
    _say(f"supervisor: process {status['pid']}")
    for one in status["brokers"]:
        where = f"process {one['pid']}" if one["pid"] else "no process"
        _say(f"broker {one['broker']}: {one['state']}, {where}, {one['restarts']} restarts")
    if restart["progress"] != Progress.NONE.value:
        _say(f"rolling restart: {restart['progress']}: {restart['detail']}")
    is_up = all(one["state"] == "serving" for one in status["brokers"])
    return EXIT_OK if is_up else EXIT_FAILED


def follow_restart(plan: NodePlan) -> int:
    """Ask for a rolling restart, and print how it goes until it has ended."""
    pid = holder(plan.lock)
    if pid is None:
        return _failed(f"{plan.lock}: nobody supervises these brokers")
    try:
        before = _status(plan)["restart"]
    except (OSError, ValueError) as error:
        return _failed(f"{plan.socket}: the supervisor does not answer: {error}")
    if before["progress"] == Progress.UNDER_WAY.value:
        return _failed(f"a rolling restart is under way: {before['detail']}")
    os.kill(pid, RESTART)
    try:
        return _follow(plan, before["number"])
    except (OSError, ValueError) as error:
        return _failed(f"{plan.socket}: the supervisor does not answer: {error}")


def _follow(plan: NodePlan, before: int) -> int:
    """Print the progress of the restart after that number; raises as `_status` does."""
    told = ""
    while True:
        restart = _patient_status(plan)["restart"]
        if restart["number"] > before:
            if restart["detail"] != told:
                told = restart["detail"]
                _say(told)
            if restart["progress"] != Progress.UNDER_WAY.value:
                return EXIT_OK if restart["progress"] == Progress.DONE.value else EXIT_FAILED
        time.sleep(POLL_SECONDS)


def _patient_status(plan: NodePlan) -> dict[str, Any]:
    """The status, even of a supervisor that is restarting."""
    begin = time.monotonic()
    while True:
        try:
            return _status(plan)
        except (OSError, ValueError):
            if time.monotonic() - begin > PATIENCE_SECONDS:
                raise
            time.sleep(POLL_SECONDS)


def _status(plan: NodePlan) -> dict[str, Any]:
    """Status from the supervisor; raises OSError, and ValueError while it starts."""
    found: dict[str, Any] = json.loads(ask(plan.socket, STATUS, ANSWER_SECONDS))
    if "brokers" not in found:
        raise ValueError("it is starting")
    return found


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


def _failed(why: str) -> int:
    print(why, file=sys.stderr)  # noqa: T201
    return EXIT_FAILED
