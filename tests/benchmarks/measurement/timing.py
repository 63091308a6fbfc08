"""Duration of one small call, and the flag of benchmarks that only show they run."""

from __future__ import annotations

import argparse
import time
import timeit
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROUNDS = 9
ROUND_SECONDS = 0.02


def best_microseconds(work: Callable[[], object]) -> float:
    """Processor time of a call in the best of several rounds: what disturbs one makes it slower."""
    timer = timeit.Timer(work, timer=time.process_time)
    number = 1
    while timer.timeit(number) < ROUND_SECONDS:
        number *= 2
    return min(timer.repeat(ROUNDS, number)) / number * 1e6


def is_smoke_run(description: str, arguments: Sequence[str] | None) -> bool:
    """Read the command line: whether to run everything once and measure nothing."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--smoke", action="store_true", help="run everything once, measure nothing")
    return bool(parser.parse_args(arguments).smoke)
