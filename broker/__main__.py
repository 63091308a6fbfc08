"""Command line: `python -m broker --config server.properties [--override key=value]…`."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from config.errors import ConfigError
from config.loader import load_broker_config

if TYPE_CHECKING:
    from collections.abc import Sequence

    from config.broker import BrokerConfig

logger = logging.getLogger("broker")

GC_THRESHOLDS = (50_000, 50, 50)
SWITCH_INTERVAL_SECONDS = 0.0005
"""How long a thread may compute while the event loop wants the interpreter back.

The loop gives it away at each system call. At Python's own 5 ms, a turn of ten sockets beside one
compressing thread takes 50 ms.
"""
EXIT_OK = 0
EXIT_REFUSED = 1
"""The broker could not start; one line said why."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a broker until SIGTERM, SIGINT or SIGHUP; returns the exit code."""
    options = _parser().parse_args(arguments)
    if not __debug__:  # an error of ours must end up as one, not in somebody's data
        print("the broker needs its assertions: run Python without -O", file=sys.stderr)  # noqa: T201
        return EXIT_REFUSED
    logging.basicConfig(
        stream=sys.stderr,
        level=options.log_level,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    try:
        config, warnings = load_broker_config(options.config, options.override, os.environ)
    except ConfigError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return EXIT_REFUSED
    for warning in warnings:
        logger.warning("%s", warning)
    return asyncio.run(_serve(config))


async def _serve(config: BrokerConfig) -> int:
    from broker.app import Broker  # noqa: PLC0415  (a bad file is told without waiting)
    from broker.runtime.allocator import give_back_large_pieces  # noqa: PLC0415
    from broker.runtime.open_files import LoopErrors  # noqa: PLC0415
    from broker.startup.start_error import StartError  # noqa: PLC0415

    broker = Broker(config)
    loop = asyncio.get_running_loop()
    for number in _endings():
        loop.add_signal_handler(number, broker.stop)
    loop.set_exception_handler(LoopErrors(broker.clock))
    _tune_garbage_collection()
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    give_back_large_pieces()
    try:
        await broker.run()
    except StartError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return EXIT_REFUSED
    return EXIT_OK


def _endings() -> list[signal.Signals]:
    """The signals that ask the broker to stop; not SIGHUP when `nohup` has it ignored."""
    endings = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        endings.append(signal.SIGHUP)  # the terminal was closed
    return endings


def _tune_garbage_collection() -> None:
    """Look for garbage cycles more rarely: requests make many objects and hardly a cycle.

    At Python's own settings the collector takes a sixth of a produce request's time.
    """
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m broker",
        description="A Kafka-compatible broker.",
        epilog="Keys and their meanings: docs/configuration.md.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--config",
        required=True,
        metavar="FILE",
        help="Kafka server.properties file",
    )
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
    parser.add_argument("--version", action=_ShowVersion, nargs=0, help="show the version and exit")
    return parser


class _ShowVersion(argparse.Action):
    """Print the version and exit; only then is it looked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(f"kafka-broker-python {_version()}")  # noqa: T201
        parser.exit(EXIT_OK)


def _version() -> str:
    """The version of the source tree this runs from, or else of the installed package."""
    import tomllib  # noqa: PLC0415
    from importlib import metadata  # noqa: PLC0415

    try:
        text = Path(__file__).parents[1].joinpath("pyproject.toml").read_text(encoding="utf-8")
        version: str = tomllib.loads(text)["project"]["version"]
    except (OSError, KeyError, ValueError):
        version = metadata.version("kafka-broker-python")
    return version


if __name__ == "__main__":
    sys.exit(main())
