"""Run seeds: `python -m tests.simulation --seeds 0-50`; also `make sim SEEDS=0-50`."""

from __future__ import annotations

import argparse
import gc
import logging
import os
import subprocess
import sys
import time

from tests.simulation.checks.refusals import SEEN, watch
from tests.simulation.defects import DEFECTS
from tests.simulation.machine.hosts import HOST
from tests.simulation.machine.sockets import SENDFILE
from tests.simulation.machine.virtual_loop import START_SECONDS
from tests.simulation.run import Run

FOUND = 1
SEEDS_PER_PROCESS = 50
"""Limit, as coroutines killed in a run stay in memory until its process ends."""
COLLECT_RARELY = 50_000, 20, 20


def main() -> int:
    """Run the seeds that are asked for; returns 1 if one of them shows a violation."""
    options = _parser().parse_args()
    first, _, last = options.seeds.partition("-")
    seeds = range(int(first), int(last or int(first) + 1))
    if os.environ.get("PYTHONHASHSEED") != "0" or len(seeds) > SEEDS_PER_PROCESS:
        return _in_processes(options, seeds)
    if options.verbose:
        logging.basicConfig(level=logging.INFO, format="%(when)s %(host)-9s %(message)s")
    else:
        logging.disable(logging.WARNING)  # errors are looked at, see `run`
    if options.defect:
        DEFECTS[options.defect]()
    watch()
    gc.set_threshold(*COLLECT_RARELY)
    found = 0
    for seed in seeds:
        found += _run(_drawn(seed, options), show_trace=options.trace)
        gc.collect()
        gc.freeze()  # what is left is kept anyway, and need not be looked at again
        if found and options.defect:
            break
    print(
        f"regions of files: {SENDFILE.calls} sends, {SENDFILE.largest} bytes at most, "
        f"{SENDFILE.cut_short} cut short, {SENDFILE.broken} on connections that were reset",
        flush=True,
    )
    old = ", ".join(f"{count} with an old {what}" for what, count in sorted(SEEN.items()))
    print(f"requests that had to be refused: {old or 'none'}", flush=True)
    return FOUND if found else 0


def _drawn(seed: int, options: argparse.Namespace) -> Run:
    return Run(
        seed,
        has_delays=options.delays,
        has_groups=options.groups,
        has_transactions=options.transactions,
    )


def _run(run: Run, *, show_trace: bool) -> int:
    started = time.monotonic()
    _name_hosts(run)
    faults = {kind: rate for kind, rate in vars(run.faults).items() if rate}
    problem = ""
    try:
        run.go()
    except BaseException as error:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        text, _, rest = str(error).partition("\n")
        problem = f"{type(error).__name__}: {text}"
        run.cluster.trace += rest.splitlines()
    count = sum(one.count for one in run.producers)
    virtual, real = run.loop.now - START_SECONDS, time.monotonic() - started
    if run.transactions is not None:
        faults["transactions"] = run.transactions.counts
    print(
        f"seed {run.seed}: {problem or 'fine'} ({count} records acknowledged,"
        f" {run.loop.steps} steps,"
        f" {virtual:.0f} virtual seconds in {real:.1f}, {faults})",
        flush=True,
    )
    if problem and show_trace:
        print("\n".join(run.cluster.trace), flush=True)
    return int(bool(problem))


def _name_hosts(run: Run) -> None:
    """Have log lines say which broker speaks, and when by the clock of the run."""

    def place(record: logging.LogRecord) -> bool:
        host = HOST.get()
        record.host = "-" if host is None else host.name
        record.when = f"{run.loop.now:10.3f}"
        return True

    for handler in logging.getLogger().handlers:
        handler.filters = [place]


def _in_processes(options: argparse.Namespace, seeds: range) -> int:
    """The same, with hashes that are the same in each run, some seeds to a process."""
    worst = 0
    for start in range(seeds.start, seeds.stop, SEEDS_PER_PROCESS):
        stop = min(start + SEEDS_PER_PROCESS, seeds.stop)
        command = [sys.executable, "-m", "tests.simulation", "--seeds", f"{start}-{stop}"]
        command += ["--defect", options.defect] if options.defect else []
        command += ["--trace"] * options.trace + ["--verbose"] * options.verbose
        command += ["--delays"] * options.delays + ["--groups"] * options.groups
        command += ["--transactions"] * options.transactions
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        worst = max(worst, subprocess.run(command, env=environment, check=False).returncode)
        if worst and options.defect:
            break
    return worst


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", default="0-50", help="FIRST-END, END excluded, or one seed")
    parser.add_argument("--defect", choices=DEFECTS, help="plant a defect, stop when it is found")
    parser.add_argument("--delays", action="store_true", help="add topics in which records wait")
    parser.add_argument("--groups", action="store_true", help="add groups of all kinds")
    parser.add_argument(
        "--transactions", action="store_true", help="add transactions, and move coordinators"
    )
    parser.add_argument("--trace", action="store_true", help="show the faults of a bad run")
    parser.add_argument("--verbose", action="store_true", help="show the brokers' log lines")
    return parser


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # what was killed has no last words
