"""The whole pipeline: produce the flights, route them, put their delays into windows, check.

    produce_flights  ->  flights  ->  route  ->  flights.on-time, .delayed,
                                                 .cancelled, .rejected
                                  ->  aggregate  ->  flights.delays-by-airport  ->  picture
                                                 flights.delays-by-weather

Without `--bootstrap-servers` it starts a broker of its own on a free port, with its data beside
the checkpoints under `--work-dir`, and stops it at the end. Running it again goes on from there:
what was produced and processed is not produced and processed again, and the counts stay the
same. `--fresh` starts from nothing.

It ends with exit code 0 only if every record of the source is in exactly one target topic, each
damaged line was rejected for its reason, and the windows hold every valid flight.
"""

from __future__ import annotations

import re
import shutil
import signal
import sys
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

if not __package__:  # given to spark-submit as a file: let the imports below find the package
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import spark_jobs.extra  # noqa: F401 - first of all: it says what is not installed

# isort: split
from pydantic import AfterValidator, PositiveInt
from rich.console import Console

from spark_jobs import aggregate, picture, route
from spark_jobs.account import Account
from spark_jobs.aggregate import AggregateOptions
from spark_jobs.errors import EXIT_BY_SIGNAL, EXIT_FAILED, BadOptionError, exit_code_of
from spark_jobs.local_broker import local_broker
from spark_jobs.options import Servers, parse_options
from spark_jobs.places import require_directory, require_file
from spark_jobs.produce_flights import ProduceOptions, produce
from spark_jobs.route import RouteOptions
from spark_jobs.session import check_java, spark_session
from spark_jobs.streams import run
from spark_jobs.tally import tally_routes, tally_windows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager


NAME = "pipeline"

OWN_BROKER = "own"


def _drawable(path: Path) -> Path:
    if path.suffix.lstrip(".").lower() not in picture.FORMATS:
        raise ValueError(f"expected a name that ends in one of {', '.join(picture.FORMATS)}")
    return path


class PipelineOptions(RouteOptions, AggregateOptions, ProduceOptions):
    """Options of all parts, and where the pipeline keeps its things."""

    bootstrap_servers: Servers = ""
    """HOST:PORT of a running broker; without it the pipeline starts one of its own"""

    once: bool = True
    """end when all is processed; with --no-once, go on until stopped, then count"""

    partitions: PositiveInt = 4
    """partitions of topics that are created"""

    work_dir: Path = Path("build/pipeline")
    """data of the own broker, checkpoints and logs, kept for the next run"""

    checkpoint: Path = Path()
    """directory that remembers how far each query came; under --work-dir when not given"""

    table: Path = Path()
    """directory for the tables of windows; under --work-dir when not given"""

    keep_rejects: bool = False
    """write rejects of the windows too, beside those of the routes"""

    picture: Annotated[Path, AfterValidator(_drawable)] = Path("build/pipeline/delays.png")
    """file for the picture of delays by hour and airport"""

    fresh: bool = False
    """forget what earlier runs left of the own broker and its checkpoints"""

    def place(self) -> Path:
        """Return the directory that belongs to this broker and no other."""
        name = re.sub(r"[^A-Za-z0-9.,-]", "-", self.bootstrap_servers)
        return self.work_dir / (name or OWN_BROKER)

    def running_at(self, servers: str) -> PipelineOptions:
        """Return the options for a broker that runs."""
        places = {"checkpoint": self.place() / "checkpoint", "table": self.place() / "tables"}
        update = {name: p for name, p in places.items() if name not in self.model_fields_set}
        return self.model_copy(update={"bootstrap_servers": servers, **update})


def main(argv: Sequence[str] | None = None) -> int:
    """Run the pipeline; return the process's exit code."""
    return exit_code_of(lambda: _run(argv))


def _run(argv: Sequence[str] | None) -> int:
    description = (__doc__ or "").partition("\n")[0]
    options = parse_options(PipelineOptions, argv, NAME, description)
    check_java()
    if options.fresh:
        _forget(options)
    _require_places(options)
    console = Console()
    with _broker(options) as servers:
        account = _work(options.running_at(servers), console)
    account.show(console)
    picture.draw(account.windows.hours, options.picture)
    console.print(f"picture: {options.picture}", highlight=False)
    if account.is_unfinished:
        print(f"stopped: {account.outstanding()}; run it again to go on", file=sys.stderr)
        return EXIT_BY_SIGNAL + signal.SIGINT
    problems = account.problems()
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return EXIT_FAILED if problems else 0


def _work(options: PipelineOptions, console: Console) -> Account:
    with _step(console, "produced") as step:
        outcome = produce(options)
        step.append(f"{outcome.sent:,} records, {outcome.already_there:,} were there before")
    with spark_session(options, NAME) as spark:
        with _step(console, "processed") as step:
            queries = [*route.start(spark, options), *aggregate.start(spark, options)]
            rows = run(queries, options)
            step += [f"{name} {count:,}" for name, count in rows.items()]
        with _step(console, "counted"):
            return Account(
                lines=outcome.lines,
                expected_reasons=outcome.reasons,
                topics=options.targets(),
                was_stopped=not options.once,
                routes=tally_routes(spark, options),
                windows=tally_windows(spark, options),
            )


def _broker(options: PipelineOptions) -> AbstractContextManager[str]:
    if options.bootstrap_servers:
        return nullcontext(options.bootstrap_servers)
    return local_broker(options.place())


def _require_places(options: PipelineOptions) -> None:
    """See that all can be written in the end, before hours of work may be for nothing."""
    require_directory("--work-dir", options.place())
    require_file("--picture", options.picture)
    require_file("--spark-log", options.spark_log)
    require_directory("--checkpoint", options.running_at("").checkpoint)


def _forget(options: PipelineOptions) -> None:
    if options.bootstrap_servers:
        raise BadOptionError("--fresh: only for the pipeline's own broker; delete topics yourself")
    if options.place().exists():
        shutil.rmtree(options.place())


@contextmanager
def _step(console: Console, name: str) -> Iterator[list[str]]:
    """Time a step; what is put into the list is said after it."""
    started = time.monotonic()
    said: list[str] = []
    yield said
    seconds = time.monotonic() - started
    console.print(f"{name:<10}{seconds:6.1f} s  {'; '.join(said)}", highlight=False)


if __name__ == "__main__":
    sys.exit(main())
