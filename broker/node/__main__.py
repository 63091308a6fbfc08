"""Command line: `python -m broker.node --config node.properties [--override key=value]…`."""

from __future__ import annotations

import signal

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # Ctrl-C ends it at once, without a traceback, until there are brokers to stop.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import argparse
import asyncio
import os
import sys
from typing import TYPE_CHECKING

from broker.network.listener import ListenError
from broker.node.command import follow_restart, show_status
from broker.node.log_lines import log_to_stderr
from broker.node.member_lock import MemberLock, holder, make_directory
from broker.node.plan import read_plan
from broker.node.supervisor import EXIT_OK, Supervisor, hold_back_signals, logger
from config.errors import ConfigError
from config.machine.own_program import usage_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.node.plan import NodePlan

EXIT_REFUSED = 1
"""It could not start, or the command failed; the reason was logged."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a node's supervisor, or ask the one that runs; returns the exit code."""
    options = _parser().parse_args(arguments)
    if not __debug__:  # our mistakes must surface as errors, not in users' data
        return _refuse("the broker needs its assertions: run Python without -O")
    if not (options.check or options.status or options.rolling_restart):
        hold_back_signals()  # its process is known to others as soon as it has its lock
    try:
        plan = read_plan(options.config, options.override, options.log_level)
    except (ConfigError, OSError) as error:
        return _refuse(str(error))
    if options.check:
        return _show_warnings(plan)
    if options.status:
        return show_status(plan)
    if options.rolling_restart:
        return follow_restart(plan)
    return _supervise(plan, options)


def _supervise(plan: NodePlan, options: argparse.Namespace) -> int:
    log_to_stderr(options.log_level, "node")
    try:
        make_directory(plan.directory)
        lock = MemberLock.take(plan.lock)
    except OSError as error:
        return _refuse(f"{error.filename}: {error.strerror}")
    if lock is None:
        return _refuse(f"{plan.lock}: process {holder(plan.lock)} supervises these brokers already")
    for warning in plan.warnings:
        logger.warning("%s", warning)
    count, first, last = len(plan.members), plan.members[0], plan.members[-1]
    text = "node of %d brokers, %d to %d; supervisor is process %d"
    logger.info(text, count, first.broker_id, last.broker_id, os.getpid())
    try:
        return asyncio.run(_run(plan, options))
    except (ConfigError, ListenError) as error:
        return _refuse(str(error))


async def _run(plan: NodePlan, options: argparse.Namespace) -> int:
    return await Supervisor(plan, _words(options)).run(options.restart_number)


def _words(options: argparse.Namespace) -> list[str]:
    """The command line again, without the command."""
    words = ["--config", options.config, "--log-level", options.log_level]
    for override in options.override:
        words += ["--override", override]
    return words


def _show_warnings(plan: NodePlan) -> int:
    for warning in plan.warnings:
        print(f"warning: {warning}", file=sys.stderr)  # noqa: T201
    return EXIT_OK


def _refuse(why: str) -> int:
    print(why, file=sys.stderr)  # noqa: T201
    return EXIT_REFUSED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=usage_name("broker.node"),
        description="Several brokers on one machine, from one property file: broker.processes.",
        epilog="Rules and examples: docs/node.md.",
        allow_abbrev=False,
    )
    parser.add_argument("--config", required=True, metavar="FILE", help="property file of the node")
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override one key of the file; may be repeated",
    )
    parser.add_argument(
        "--log-level",
        default="INFO",
        choices=("DEBUG", "INFO", "WARNING", "ERROR"),
        help="least severe log lines to show (default: INFO)",
    )
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--check", action="store_true", help="only read the file")
    instead.add_argument(
        "--status", action="store_true", help="show how the brokers of the running node are"
    )
    instead.add_argument(
        "--rolling-restart",
        action="store_true",
        help="restart the brokers of the running node one by one, each when replicas are in sync",
    )
    parser.add_argument("--restart-number", type=int, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
