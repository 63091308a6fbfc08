"""Command line: makes the compiled build, shows whether it is right, or runs a module on it.

python -m compiled build
python -m compiled show
python -m compiled run tests.benchmarks.produce_requests --smoke
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import time
from typing import TYPE_CHECKING

from compiled.activation import BuildError, activate, build_directory

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = "python -m compiled"
EXIT_OK = 0
EXIT_REFUSED = 1


def main(arguments: Sequence[str] | None = None, program: str = PROGRAM) -> int:
    """Run the command; return the exit code."""
    parser = argparse.ArgumentParser(prog=program, description="The compiled build of the broker.")
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("build", help="compile the hot modules: takes minutes")
    making.add_argument(
        "--optimization", choices=["0", "1", "2", "3"], help="level of the C compiler (default: 2)"
    )
    commands.add_parser("show", help="say whether a process started now would run compiled")
    run = commands.add_parser("run", help="run a module as `python -m` does, compiled if possible")
    run.add_argument("module")
    run.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    try:
        if options.command == "build":
            _build(options.optimization)
        elif options.command == "show":
            activation = activate()
            print(f"compiled: {activation.answer} ({activation.reason})")  # noqa: T201
        else:
            activate()
            sys.argv = [options.module, *options.arguments]
            runpy.run_module(options.module, run_name="__main__", alter_sys=True)
    except BuildError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return EXIT_REFUSED
    return EXIT_OK


def _build(optimization: str | None) -> None:
    from compiled.build import OPTIMIZATION, build  # noqa: PLC0415 - only this needs a compiler

    target = build_directory(os.environ)
    begin = time.monotonic()
    record = build(target, optimization=optimization or OPTIMIZATION)
    seconds = time.monotonic() - begin
    print(f"compiled {len(record.modules)} modules into {target} in {seconds:.0f} s")  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
