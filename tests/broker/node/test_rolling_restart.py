"""The order of a rolling restart, and the conditions that stop it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from broker.node import rolling_restart
from broker.node.member import passes
from broker.node.rolling_restart import Progress, RollingRestart
from broker.node.states import State

if TYPE_CHECKING:
    from collections.abc import Callable


class Broker:
    """Serves again after some looks at it; its replicas are in sync after some more."""

    def __init__(self, number: int, steps: list[str], looks: int = 0) -> None:
        self.name = f"broker {number}"
        self.state = State.SERVING
        self.on_end: Callable[[], None] = lambda: None
        self.lacking: list[object] = []
        self.answer_seconds = 0.0
        self.is_cut_off = False
        self._steps = steps
        self._looks = looks

    async def status(self) -> dict[str, object]:
        self._steps.append(f"ask {self.name[-1]}")
        await passes(asyncio.Event(), self.answer_seconds)
        if self.is_cut_off:
            return {"is_serving": True, "out_of_sync": 0, "is_cut_off": True}
        if not self.lacking:
            return {"is_serving": True, "out_of_sync": 0}
        return {"is_serving": True, "out_of_sync": self.lacking.pop()}

    async def end(self) -> bool:
        self._steps.append(f"restart {self.name[-1]}")
        self.on_end()
        return True


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rolling_restart, "POLL_SECONDS", 0.001)


def run(brokers: list[Broker], timeout_ms: int = 1000) -> RollingRestart:
    async def all_of_it() -> RollingRestart:
        restart = RollingRestart(brokers, asyncio.Event(), timeout_ms)
        restart.begin(5, "checking")
        await restart.run()
        return restart

    return asyncio.run(all_of_it())


def test_each_broker_is_restarted_once_with_health_checks_in_between() -> None:
    steps: list[str] = []
    restart = run([Broker(0, steps), Broker(1, steps)])
    asked = ["ask 0", "ask 1"]
    assert steps == [*asked, "restart 0", *asked, "restart 1", *asked]
    assert restart.stage == (5, Progress.DONE, "all brokers were restarted")


def test_the_next_waits_until_the_replicas_of_all_are_in_sync() -> None:
    steps: list[str] = []
    brokers = [Broker(0, steps), Broker(1, steps)]
    brokers[0].on_end = lambda: brokers[0].lacking.extend([1, 2, None])
    brokers[0].lacking = []
    assert run(brokers).stage.progress is Progress.DONE
    between = steps[steps.index("restart 0") + 1 : steps.index("restart 1")]
    assert between == ["ask 0"] * 4 + ["ask 1"]


@pytest.mark.parametrize(
    ("lacking", "why"),
    [
        (7, "broker 1 has replicas of 7 partitions that are not in sync"),
        (None, "broker 1 does not say how it is"),
    ],
)
def test_rolling_restart_is_given_up_when_replicas_stay_out_of_sync(
    lacking: object, why: str
) -> None:
    steps: list[str] = []
    brokers = [Broker(0, steps), Broker(1, steps)]
    brokers[0].on_end = lambda: brokers[1].lacking.extend([lacking] * 10_000)
    restart = run(brokers, timeout_ms=20)
    assert restart.stage.progress is Progress.FAILED
    assert restart.stage.detail.startswith(f"{why}, after 0.02")
    assert "restart 1" not in steps


def test_rolling_restart_is_given_up_when_a_broker_does_not_serve() -> None:
    steps: list[str] = []
    brokers = [Broker(0, steps), Broker(1, steps)]
    brokers[1].state = State.WAITING
    restart = run(brokers, timeout_ms=20)
    assert restart.stage.detail.startswith("broker 1 is waiting, after")
    assert "restart 0" not in steps


def test_the_time_that_a_broker_takes_to_answer_counts() -> None:
    steps: list[str] = []
    hangs = Broker(0, steps)
    hangs.answer_seconds, hangs.lacking = 0.05, [None] * 10_000
    assert run([hangs], timeout_ms=20).stage.progress is Progress.FAILED
    assert steps == ["ask 0"]


def test_no_broker_is_restarted_while_zookeeper_is_unreachable() -> None:
    """The brokers' view of replicas is stale, and none of them could start again."""
    steps: list[str] = []
    brokers = [Broker(0, steps), Broker(1, steps)]
    brokers[1].is_cut_off = True
    restart = run(brokers, timeout_ms=20)
    assert restart.stage.detail == "broker 1 cannot reach ZooKeeper, after 0.02 s"
    assert "restart 0" not in steps
