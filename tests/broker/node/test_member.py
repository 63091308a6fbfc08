"""A broker of a node is kept up, started once, and found again; a stand-in takes its place."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import shutil
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from broker.node.member import Member, passes
from broker.node.member_lock import holder
from broker.node.plan import MemberPlan
from broker.node.states import State
from config.broker import BrokerConfig
from tests.support.processes.children import DIES_WITH_PARENT

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

pytestmark = pytest.mark.process

SECONDS = 120.0
POLL_SECONDS = 0.01
NODE = BrokerConfig(
    broker_processes_restart_backoff_ms=10,
    broker_processes_restart_backoff_max_ms=40,
    broker_processes_stop_timeout_ms=60_000,
)


def plan_of(directory: Path, habit: str = "serves") -> MemberPlan:
    config = BrokerConfig(
        broker_id=3,
        broker_processes_directory=str(directory),
        status_socket=str(directory / "broker3.sock"),
    )
    setpriv = shutil.which(DIES_WITH_PARENT[0])
    assert setpriv is not None
    words = (str(directory / "broker3.lock"), str(directory / "broker3.sock"), habit)
    stand_in = (sys.executable, "-m", "tests.broker.node.stand_in", *words)
    return MemberPlan(0, config, (setpriv, *DIES_WITH_PARENT[1:], *stand_in))


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not is_so():
            await passes(asyncio.Event(), POLL_SECONDS)


def kept(scenario: Callable[[Member], Coroutine[None, None, None]], plan: MemberPlan) -> Member:
    """Run a scenario with a member that is kept up meanwhile, and stop it."""

    async def run() -> Member:
        member = Member(plan, NODE)
        async with asyncio.TaskGroup() as group:
            group.create_task(member.run())
            try:
                await scenario(member)
            finally:
                if member.process is not None and member.state is not State.STOPPING:
                    member.process.send(signal.SIGKILL)
                await member.stop()
        assert member.state is State.DOWN
        assert holder(plan.lock) is None
        return member

    return asyncio.run(run())


def test_a_wait_cancelled_as_its_event_is_set_is_cancelled() -> None:
    async def scenario() -> None:
        event = asyncio.Event()
        waiting = asyncio.get_running_loop().create_task(passes(event, SECONDS))
        await passes(asyncio.Event(), POLL_SECONDS)
        event.set()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(scenario())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGRTMIN + 1])
def test_a_killed_broker_is_restarted(tmp_path: Path, number: int) -> None:
    async def scenario(member: Member) -> None:
        await until(lambda: member.state is State.SERVING)
        assert member.process is not None
        first = member.process.pid
        os.kill(first, number)
        await until(lambda: member.restarts == 1 and member.state is State.SERVING)
        assert member.process is not None
        assert member.process.pid == holder(member.plan.lock) != first

    kept(scenario, plan_of(tmp_path))


def test_a_stopped_broker_exits_cleanly_and_stays_down(tmp_path: Path) -> None:
    async def scenario(member: Member) -> None:
        await until(lambda: member.state is State.SERVING)
        process = member.process
        assert process is not None
        assert await member.stop()
        assert process.exit_code == 0

    assert kept(scenario, plan_of(tmp_path)).restarts == 0


def test_a_broker_ended_for_a_restart_is_started_once(tmp_path: Path) -> None:
    async def scenario(member: Member) -> None:
        await until(lambda: member.state is State.SERVING)
        assert member.process is not None
        first = member.process.pid
        assert await member.end()
        await until(lambda: member.state is State.SERVING)
        assert member.process is not None
        assert member.process.pid != first
        assert member.restarts == 0

    kept(scenario, plan_of(tmp_path))


def test_a_running_broker_is_adopted_and_not_started_twice(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    ignored = dataclasses.replace(plan, command=("/bin/false",))

    async def scenario(member: Member) -> None:
        await until(lambda: member.state is State.SERVING)
        assert member.process is not None
        second = Member(ignored, NODE)
        async with asyncio.TaskGroup() as group:
            group.create_task(second.run())
            await until(lambda: second.state is State.SERVING)
            assert second.process is not None
            assert second.process.pid == member.process.pid
            assert await second.stop()  # whoever tells it to stop is obeyed
        assert second.restarts == 0

    kept(scenario, plan)


def test_a_broker_that_cannot_start_is_retried(tmp_path: Path) -> None:
    async def scenario(member: Member) -> None:
        await until(lambda: member.restarts >= 3)
        assert member.state is not State.SERVING

    kept(scenario, plan_of(tmp_path, "refuses"))


def test_a_program_that_is_not_there_is_tried_again(tmp_path: Path) -> None:
    async def scenario(member: Member) -> None:
        await until(lambda: member._failures >= 3)
        assert member.process is None

    plan = dataclasses.replace(plan_of(tmp_path), command=(str(tmp_path / "none"),))
    assert kept(scenario, plan).restarts == 0


def test_a_broker_that_does_not_stop_in_time_is_killed(tmp_path: Path) -> None:
    async def scenario(member: Member) -> None:
        await until(lambda: member.state is State.SERVING)
        member._stop_seconds = 0.2
        process = member.process
        assert process is not None
        assert not await member.stop()
        assert process.exit_code == -signal.SIGKILL

    kept(scenario, plan_of(tmp_path, "stubborn"))


def test_a_broker_that_never_serves_can_be_stopped(tmp_path: Path) -> None:
    async def scenario(member: Member) -> None:
        await until(lambda: holder(member.plan.lock) is not None)
        assert member.state is State.STARTING
        assert await member.stop()

    kept(scenario, plan_of(tmp_path, "mute"))


def test_a_hurried_broker_stops_without_a_waiter(tmp_path: Path) -> None:
    async def scenario(member: Member) -> None:
        await until(lambda: member.state is State.SERVING)
        process = member.process
        assert process is not None
        member.hurry()
        await process.ended.wait()
        assert process.exit_code == 0

    assert kept(scenario, plan_of(tmp_path)).restarts == 0
