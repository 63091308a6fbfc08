"""Jobs that are killed with SIGKILL in mid-work, again and again, and then run to their end.

A test draws moments from a seed and lets a job go through them:

    job = Job("archive", ("--bootstrap-servers", servers, ...), checkpoint=tmp_path / "checkpoint")
    ordeal = run_through_kills(job, drawn_moments(seed, job.named_queries(), batches=6))
    assert ordeal.unfinished             # it was killed where it hurts
    ...                                  # and what the job wrote is exact

Python and its JVM die at once, and nothing of them runs a line more. Moments are known by the
clock, or by the checkpoint's files: `offsets/N` is written when batch N is planned, `commits/N`
when all of it is done. Between the two lies all that a job does to the world.
"""

from __future__ import annotations

import enum
import itertools
import random
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from spark_jobs.errors import EXIT_FAILED
from tests.spark_jobs.kills.job_process import POLL_SECONDS, RUN_SECONDS, run_job, running
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.spark_jobs.kills.job_process import Job, JobProcess
    from tests.support.brokers.broker_process import BrokerProcess

SHORT_DELAY_SECONDS = 0.2
"""No batch is done so soon."""

LONGEST_DELAY_SECONDS = 1.5
LONGEST_START_SECONDS = 15.0
BROKER_DOWN_SECONDS = 1.0
MOST_RERUNS = 3


class Stage(enum.Enum):
    """What must have happened in this run of the job."""

    STARTED = "the process runs"
    PLANNED = "a new batch has its offsets written, and not its commit"
    COMMITTED = "a batch has its commit written"


@dataclass(frozen=True, slots=True)
class Moment:
    """When to kill: some time after a stage of a batch of a query."""

    query: str
    batch: int
    stage: Stage
    delay_seconds: float = 0.0

    def ahead_of(self, job: Job) -> Moment:
        """Return the moment with a batch that has not come to its stage yet."""
        done = job.planned if self.stage is Stage.PLANNED else job.committed
        return replace(self, batch=max({self.batch - 1, *done(self.query)}) + 1)

    def is_reached(self, job: Job) -> bool:
        """Whether it has come to its stage."""
        match self.stage:
            case Stage.STARTED:
                return True
            case Stage.PLANNED:
                return self.batch in job.planned(self.query)
            case Stage.COMMITTED:
                return self.batch in job.committed(self.query)


@dataclass(slots=True)
class Ordeal:
    """What a job went through."""

    kills: list[Moment] = field(default_factory=list)
    """Moments at which something was killed."""

    unfinished: list[str] = field(default_factory=list)
    """Batches, as `query/N`, that were under way at those moments."""

    failures: list[str] = field(default_factory=list)
    """Error lines of runs that ended by themselves, because the broker was away."""

    said: str = ""
    """All that the last run said, which came to its end."""


def drawn_moments(
    seed: int, queries: Sequence[str], batches: int, kills: int = 2
) -> tuple[Moment, ...]:
    """Draw moments in order of batches; the first is soon after the begin of a batch's work.

    `batches` is about how many the whole run has.
    """
    chance = random.Random(seed)
    stages = [Stage.PLANNED, *chance.choices([*Stage], weights=(1, 3, 1), k=kills - 1)]
    delays = [chance.uniform(0.0, SHORT_DELAY_SECONDS)]
    delays += [_delay(chance, stage) for stage in stages[1:]]
    numbers = sorted(chance.sample(range(max(batches, kills)), kills))
    return tuple(
        Moment(chance.choice(list(queries)), number, stage, delay)
        for number, stage, delay in zip(numbers, stages, delays, strict=True)
    )


def _delay(chance: random.Random, stage: Stage) -> float:
    if stage is Stage.STARTED:
        return chance.uniform(0.0, LONGEST_START_SECONDS)
    return chance.choice((0.0, chance.uniform(0.0, LONGEST_DELAY_SECONDS)))


def run_through_kills(job: Job, moments: Sequence[Moment]) -> Ordeal:
    """Kill the driver at each moment and start it again; then let it come to its end."""
    ordeal = Ordeal()
    for moment in moments:
        target = moment.ahead_of(job)
        with running(job, "--once") as driver:
            if _wait_for(job, target, driver):
                driver.kill()
                ordeal.kills.append(target)
                ordeal.unfinished += job.unfinished_batches()
            else:
                assert driver.poll() == 0, driver.said()
    last = run_job(job, "--once")
    assert last.returncode == 0, f"after {ordeal.kills}:\n{last.stdout}"
    assert job.unfinished_batches() == []
    ordeal.said = last.stdout
    return ordeal


def kill_while_writing(
    job: Job, written: Callable[[], object], batches: int, delay: float = 0.0
) -> list[str]:
    """Kill the driver when it writes, after so many batches; return what batches were under way.

    It dies `delay` seconds after it began to write, or when it next writes if it has committed all
    by then.

    `written` tells how much it has written, as the world sees it. It changes between a batch's plan
    and its commit, and no moment by the checkpoint's files is sure to come after it.
    """
    with running(job, "--once") as driver:

        def is_over() -> bool:
            return driver.poll() is not None

        def has_come_so_far() -> bool:
            return sum(len(job.committed(query)) for query in job.named_queries()) >= batches

        assert wait_until(lambda: has_come_so_far() or is_over(), RUN_SECONDS, POLL_SECONDS)
        for pause in itertools.chain([delay], itertools.repeat(0.0)):
            before = written()
            assert wait_until(lambda: written() != before or is_over(), RUN_SECONDS, POLL_SECONDS)  # noqa: B023
            wait_until(is_over, pause, POLL_SECONDS)
            assert not is_over(), driver.said()
            if job.unfinished_batches():
                break
        driver.kill()
    return job.unfinished_batches()


def run_through_broker_kills(
    job: Job, broker: BrokerProcess, moments: Sequence[Moment], down: float = BROKER_DOWN_SECONDS
) -> Ordeal:
    """Kill the broker at each moment; it comes back on its port, with its data.

    The job must come to its end by itself, or fail with one clear line; then it is run again.
    """

    def strike() -> None:
        broker.kill()
        wait_until(lambda: False, down)
        broker.start()

    return run_through_strikes(job, moments, strike)


def run_through_strikes(
    job: Job, moments: Sequence[Moment], strike: Callable[[], object]
) -> Ordeal:
    """Strike something else than the driver at each moment, and let the job come to its end.

    Where it fails with one clear line it is run again: `failures` has the lines.
    """
    ordeal = Ordeal()
    waiting = list(moments)
    for _ in range(len(moments) + MOST_RERUNS):
        with running(job, "--once") as driver:
            while waiting and _wait_for(job, target := waiting[0].ahead_of(job), driver):
                ordeal.kills.append(target)
                ordeal.unfinished += job.unfinished_batches()
                waiting.pop(0)
                strike()
            code = driver.wait()
        ordeal.said = driver.said()
        if code == 0:
            assert job.unfinished_batches() == []
            return ordeal
        last_line = ordeal.said.strip().rpartition("\n")[2]
        assert code == EXIT_FAILED, ordeal.said
        assert last_line.startswith("error: "), ordeal.said
        ordeal.failures.append(last_line)
    raise AssertionError(f"{job.name} does not come to its end: {ordeal}")


def _wait_for(job: Job, moment: Moment, driver: JobProcess) -> bool:
    """Wait for the moment; return False when the job ended before it."""

    def is_decided() -> bool:
        return moment.is_reached(job) or driver.poll() is not None

    if not wait_until(is_decided, RUN_SECONDS, POLL_SECONDS) or driver.poll() is not None:
        return False
    return not wait_until(lambda: driver.poll() is not None, moment.delay_seconds, POLL_SECONDS)
