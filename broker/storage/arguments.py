"""The command line, with the flags of Apache Kafka's `kafka-storage`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Final, NoReturn

from config.machine.own_program import usage_name

if TYPE_CHECKING:
    from collections.abc import Sequence

EXIT_REFUSED: Final = 1
"""Exit code of every refusal, of a wrong command line too; scripts know it from Apache's tool."""


class _Parser(argparse.ArgumentParser):
    """Ends with that code where argparse would with 2."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the command line, and end."""
        self.print_usage(sys.stderr)
        self.exit(EXIT_REFUSED, f"{self.prog}: error: {message}\n")


def parse_arguments(arguments: Sequence[str], default_release: str) -> argparse.Namespace:
    """Read the command line; ends the process if it is wrong."""
    parser = _Parser(
        prog=usage_name("broker.storage"),
        description="Formats the log directories of a node of a Raft quorum.",
        fromfile_prefix_chars="@",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    info = commands.add_parser("info", help="show what the log directories are")
    _add_config(info)
    _add_format(commands.add_parser("format", help="format the log directories"), default_release)
    mapping = commands.add_parser(
        "version-mapping", help="show the levels that a release sets for features"
    )
    mapping.add_argument(
        "--release-version", "-r", default=default_release, help="default: %(default)s"
    )
    dependencies = commands.add_parser(
        "feature-dependencies", help="show the levels that levels of features depend on"
    )
    dependencies.add_argument(
        "--feature", "-f", action="append", required=True, metavar="NAME=LEVEL"
    )
    commands.add_parser("random-uuid", help="draw an id for a cluster or a directory")
    return parser.parse_args(arguments)


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config", "-c", required=True, metavar="FILE", help="the node's property file"
    )


def _add_format(parser: argparse.ArgumentParser, default_release: str) -> None:
    _add_config(parser)
    add = parser.add_argument
    add("--cluster-id", "-t", required=True, metavar="ID", help="the same on all nodes")
    add(
        *("--add-scram", "-S"),
        action="append",
        default=[],
        metavar="CREDENTIAL",
        help="a user of the new cluster: SCRAM-SHA-256=[name=alice,password=alice-secret] or "
        'SCRAM-SHA-512=[name=alice,iterations=8192,salt="N3E=",saltedpassword="YCE="]',
    )
    add(
        *("--ignore-formatted", "-g"),
        action="store_true",
        help="leave formatted directories alone, and format the others",
    )
    add(
        *("--release-version", "-r"),
        metavar="RELEASE",
        help=f"sets the levels of all features; default: {default_release}",
    )
    add(
        *("--feature", "-f"),
        action="append",
        default=[],
        metavar="NAME=LEVEL",
        help="another level for one feature",
    )
    voters = parser.add_mutually_exclusive_group()
    voters.add_argument(
        "--standalone", "-s", action="store_true", help="this controller is the only voter"
    )
    voters.add_argument(
        *("--no-initial-controllers", "-N"),
        action="store_true",
        help="this node joins a quorum whose voters are known elsewhere",
    )
    voters.add_argument(
        *("--initial-controllers", "-I"),
        metavar="ID@HOST:PORT:DIRECTORY-ID,…",
        help="all voters, the same on all nodes",
    )
