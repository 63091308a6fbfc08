"""Command line: `python -m broker --config server.properties [--override key=value]…`.

With `--process` it runs one of the brokers of `broker.processes`, as `python -m broker.node` does.
"""

from __future__ import annotations

import signal

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # Ctrl-C ends it at once, without a traceback, until the broker has something to close.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import argparse
import asyncio
import gc
import logging
import os
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from broker.node.log_lines import log_to_stderr, prefixed
from compiled.activation import BuildError, activate
from config.errors import ConfigError, invalid
from config.loader import load_broker_config
from config.machine.cpus import cpus_of
from config.machine.own_program import COMMAND, usage_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.health.service_notices import ServiceNotices
    from config.broker import BrokerConfig

logger = logging.getLogger("broker")

GC_THRESHOLDS = (20_000, 1, 3750)
"""The second look, at what survived two first ones, takes 8 ms; after five it took 20, and after
fifty of 50,000 objects 0.2 s while a long request was read. However many first ones it comes after,
each object is looked at as often. All there is, is looked at after 150 million objects.
"""
SWITCH_INTERVAL_SECONDS = 0.0005
"""Time that a thread may compute while the event loop wants the interpreter back.

The loop gives it away at each system call. At Python's own 5 ms, a turn of ten sockets beside one
compressing thread takes 50 ms.
"""
EXIT_OK = 0
EXIT_REFUSED = 1
"""The broker could not start; one line said why."""


def main(arguments: Sequence[str] | None = None, words: Sequence[str] = ()) -> int:
    """Run a broker until SIGTERM, SIGINT or SIGHUP; returns the exit code.

    `words` are what else the command does, for `--help`.
    """
    options = _parser(words).parse_args(arguments)
    if not __debug__:  # our mistakes must surface as errors, not in users' data
        print("the broker needs its assertions: run Python without -O", file=sys.stderr)  # noqa: T201
        return EXIT_REFUSED
    if options.process is not None:
        return _run_process(options)
    log_to_stderr(options.log_level)
    try:
        config, warnings = load_broker_config(options.config, options.override, os.environ)
        _refuse_several(config, options.config)
        _stay_on_cpus(config)
    except ConfigError as error:
        return _refuse(str(error))
    for warning in warnings:
        logger.warning("%s", warning)
    return asyncio.run(_serve(config))


def _run_process(options: argparse.Namespace) -> int:
    """Run one of the brokers of `broker.processes`; the node has logged the file's warnings."""
    from broker.node.member_lock import MemberLock, holder, make_directory  # noqa: PLC0415
    from broker.node.plan import lock_of, this_process  # noqa: PLC0415

    name = f"process {options.process}"
    try:
        process = this_process(options.process)
        config, _ = load_broker_config(options.config, options.override, os.environ, process)
        _refuse_process(options.process, config, options.config)
        name = f"broker {config.broker_id}"
        _stay_on_cpus(config)
        make_directory(str(config.broker_processes_directory))
        path = lock_of(config)
        lock = MemberLock.take(path)
    except ConfigError as error:
        return _refuse(prefixed(f"{name} | ", str(error)))
    except OSError as error:
        return _refuse(f"{name} | {error.filename}: {error.strerror}")
    if lock is None:
        return _refuse(f"{name} | {path}: it runs already, as process {holder(path)}")
    log_to_stderr(options.log_level, name)
    return asyncio.run(_serve(config, f"{name} | "))


def _refuse(why: str) -> int:
    print(why, file=sys.stderr)  # noqa: T201
    return EXIT_REFUSED


def _refuse_several(config: BrokerConfig, path: str) -> None:
    if config.broker_processes > 1:
        text = (
            f"{path} is for {config.broker_processes} brokers (broker.processes); start them by: "
        )
        program = usage_name("broker.node")
        raise ConfigError(f"{text}{program} --config {path}", "broker.processes")


def _refuse_process(number: int, config: BrokerConfig, path: str) -> None:
    if not 0 <= number < config.broker_processes:
        text = f"--process {number}: {path} is for processes 0 to {config.broker_processes - 1}"
        raise ConfigError(f"{text} (broker.processes)", "broker.processes")


def _stay_on_cpus(config: BrokerConfig) -> None:
    """Use the CPUs of `broker.cpus` alone, for this process and its children."""
    cpus = cpus_of(config)
    if cpus:
        try:
            os.sched_setaffinity(0, cpus)
        except OSError:
            there_are = ",".join(map(str, sorted(os.sched_getaffinity(0))))
            shown = ",".join(map(str, cpus))
            raise invalid("broker.cpus", shown, f"CPUs here are {there_are}") from None


async def _serve(config: BrokerConfig, prefix: str = "") -> int:
    try:
        activation = activate()  # before modules that it may replace are imported
    except BuildError as error:
        return _refuse(prefixed(prefix, str(error)))
    if activation.is_outdated:
        logger.warning("compiled: no: %s", activation.reason)

    _tune_garbage_collection()  # before 800 modules are imported, none of which is garbage
    from broker.app import Broker  # noqa: PLC0415  (a bad file is told without waiting)
    from broker.health.service_notices import ServiceNotices  # noqa: PLC0415
    from broker.runtime.allocator import give_back_large_pieces  # noqa: PLC0415
    from broker.runtime.open_files import LoopErrors  # noqa: PLC0415
    from broker.runtime.timers import Timers  # noqa: PLC0415
    from broker.startup.start_error import StartError  # noqa: PLC0415

    broker = Broker(config)
    loop = asyncio.get_running_loop()
    for number in _endings():
        loop.add_signal_handler(number, broker.stop)
    loop.set_exception_handler(LoopErrors(broker.clock))
    notices = ServiceNotices(os.environ, os.getpid(), Timers(loop))
    broker.on_ready = partial(_begin_to_serve, notices, f"broker {config.broker_id} serves")
    broker.on_stopping = notices.stopping
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    give_back_large_pieces()
    try:
        await broker.run()
    except StartError as error:
        return _refuse(prefixed(prefix, str(error)))
    finally:
        gc.enable()
        notices.close()
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
    gc.set_threshold(*GC_THRESHOLDS)
    gc.disable()


def _begin_to_serve(notices: ServiceNotices, status: str) -> None:
    _settle()
    notices.ready(status)


def _settle() -> None:
    """Exempt the objects of the start from garbage collection, and enable it.

    While 50,000 partitions are loaded, the collector would scan their million objects repeatedly,
    and later at each full collection, half a second long.
    """
    gc.freeze()
    gc.enable()


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    more = f" Instead of options: {', '.join(words)}; each has its --help." if words else ""
    parser = argparse.ArgumentParser(
        prog=usage_name("broker"),
        description="A Kafka-compatible broker.",
        epilog=f"Keys and their meanings: docs/configuration.md.{more}",
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
    parser.add_argument(
        "--process",
        type=int,
        metavar="K",
        help="run one of the brokers of broker.processes, the first of which is 0",
    )
    parser.add_argument("--version", action=_ShowVersion, nargs=0, help="show the version and exit")
    return parser


class _ShowVersion(argparse.Action):
    """Print the version and exit; only then is it looked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(f"{COMMAND} {_version()}")  # noqa: T201
        parser.exit(EXIT_OK)


def _version() -> str:
    """The version of the source tree this runs from, or else of the installed package."""
    import tomllib  # noqa: PLC0415
    from importlib import metadata  # noqa: PLC0415

    try:
        text = Path(__file__).parents[1].joinpath("pyproject.toml").read_text(encoding="utf-8")
        version: str = tomllib.loads(text)["project"]["version"]
    except (OSError, KeyError, ValueError):
        version = metadata.version(COMMAND)
    return version


def leave(code: int) -> NoReturn:
    """End the process at once, once all is closed.

    The interpreter would look at each object that is left before it ends, which takes three seconds
    for 50,000 partitions; the system takes the memory back in a tenth of one.
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # the reader has gone
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    leave(main())
