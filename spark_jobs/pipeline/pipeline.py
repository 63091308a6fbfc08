"""The whole family on a year of flights: produced, routed, aggregated, archived, audited, drawn.

    produce    ->  flights (336,776, and damaged lines), planes
    route      ->  flights.on-time, .delayed, .cancelled, .rejected
    retry      ->  flights.retry.1, .retry.2, then flights.dead
    aggregate  ->  flights.delays-by-airport, .delays-by-weather, and the same as tables
    archive    ->  a table by date of event time
    audit          the topic beside the archive, record by record
    enrich     ->  flights.enriched, with the plane of each flight
    activity   ->  made-up visits of a website: activity, activity.sessions, .funnels, .top-pages
    logs       ->  the machine's package logs: logs, logs.parsed, logs.rejected, logs.errors
    report     ->  a page of plots

Without `--bootstrap-servers` it starts a broker of its own on a free port, with its data beside
the checkpoints under `--work-dir`, and stops it at the end. Running it again goes on from there:
what was produced and processed is not produced and processed again, and the counts stay the
same. `--fresh` starts from nothing, `--only JOB ...` runs some of it.

Each job runs to its end before the next begins, so that the seconds are its own. What it wrote is
then read back and counted; the exit code is 0 only if all counts are what they must be.
"""

from __future__ import annotations

import shutil
import sys
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

if not __package__:  # given to spark-submit as a file: let the imports below find the package
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import spark_jobs.dependency_check  # noqa: F401 - first of all: it says what is not installed

# isort: split
from rich.console import Console

from spark_jobs.errors import EXIT_FAILED, BadOptionError, exit_code_of
from spark_jobs.options import parse_options
from spark_jobs.paths import require_directory, require_file
from spark_jobs.pipeline.local_broker import local_broker
from spark_jobs.pipeline.pipeline_options import PipelineOptions
from spark_jobs.pipeline.pipeline_run import Run
from spark_jobs.pipeline.pipeline_stages import STAGES
from spark_jobs.spark.spark_session import check_java, spark_session

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from spark_jobs.pipeline.count_check import Balance

NAME = "pipeline"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the pipeline; return the process's exit code."""
    return exit_code_of(lambda: _run(argv))


def _run(argv: Sequence[str] | None) -> int:
    options = parse_options(PipelineOptions, argv, NAME, __doc__)
    check_java()
    if options.fresh:
        _forget(options)
    _require_places(options)
    console = Console()
    begin = time.monotonic()
    with _broker(options) as servers:
        balance = _work(options.running_at(servers), console)
    balance.show(console)
    console.print(f"{time.monotonic() - begin:.0f} s in all", highlight=False)
    for name, path in (("report", options.page), ("aggregate", options.picture)):
        if name in options.chosen():
            console.print(f"see {path}", highlight=False)
    problems = balance.problems()
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return EXIT_FAILED if problems else 0


def _work(options: PipelineOptions, console: Console) -> Balance:
    with spark_session(options, NAME) as spark:
        run = Run(options, spark)
        for job in options.chosen():
            with _timed(console, run.balance, job) as said:
                said.append(STAGES[job](run))
    return run.balance


def _broker(options: PipelineOptions) -> AbstractContextManager[str]:
    if options.bootstrap_servers:
        return nullcontext(options.bootstrap_servers)
    return local_broker(options.place())


def _require_places(options: PipelineOptions) -> None:
    """See that all can be written in the end, before minutes of work may be for nothing."""
    require_directory("--work-dir", options.place())
    require_file("--page", options.page)
    require_file("--picture", options.picture)
    require_file("--spark-log", options.spark_log)


def _forget(options: PipelineOptions) -> None:
    if options.bootstrap_servers:
        raise BadOptionError("--fresh: only for the pipeline's own broker; delete topics yourself")
    if options.place().exists():
        shutil.rmtree(options.place())


@contextmanager
def _timed(console: Console, balance: Balance, job: str) -> Iterator[list[str]]:
    """Time a job; what is put into the list is said after it."""
    started = time.monotonic()
    said: list[str] = []
    yield said
    seconds = balance.seconds[job] = time.monotonic() - started
    console.print(f"{job:<10}{seconds:6.1f} s  {'; '.join(said)}", highlight=False)
