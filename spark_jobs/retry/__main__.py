"""Command line: `python -m spark_jobs.retry --dead-topic billing.dlq`.

Puts all dead letters that are in the topic now back where they came from, each once, also when it
is killed and run again (`replay`). It needs confluent-kafka and pydantic, and no Spark.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from typing import TYPE_CHECKING, Final

from spark_jobs.errors import JobError, exit_code_of
from spark_jobs.program import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Sequence

NEEDED: Final = {"confluent_kafka": "confluent-kafka", "pydantic": "pydantic"}
"""Modules that the broker alone does not bring, and the packages that do."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay; returns the exit code."""
    options = _parser().parse_args(arguments)

    def work() -> int:
        _check_installed()
        from spark_jobs.retry.replay import replay  # noqa: PLC0415 - which needs them

        count = replay(options.bootstrap_servers, options.dead_topic, dict(options.client))
        print(f"{count:,} dead letters of {options.dead_topic} replayed")
        return 0

    return exit_code_of(work)


def _check_installed() -> None:
    missing = [name for module, name in NEEDED.items() if importlib.util.find_spec(module) is None]
    if missing:
        packages = " ".join(missing)
        how = f"`{sys.executable} -m pip install {packages}`"
        raise JobError(f"not installed: {', '.join(missing)}. Install with {how}")


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text} is no KEY=VALUE")
    return name, value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"{PROGRAM}.retry",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--bootstrap-servers", default="localhost:9092")
    add("--dead-topic", required=True, help="topic of dead letters")
    add(
        "--client",
        action="append",
        default=[],
        type=_setting,
        metavar="KEY=VALUE",
        help="a setting of librdkafka, e.g. security.protocol=SSL; may be repeated",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
