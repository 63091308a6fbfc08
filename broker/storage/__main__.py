"""Command line: `python -m broker.storage format --cluster-id ID --config server.properties …`.

    format                 format the log directories of a node of a Raft quorum
    info                   show what the log directories are
    random-uuid            draw an id for a cluster or a directory
    version-mapping        show the levels that a release sets for features
    feature-dependencies   show the levels that levels of features depend on

Exit code 0 if it was done, or if `info` found no problem; 1 otherwise.
"""

from __future__ import annotations

import os
import secrets
import sys
import time
from typing import TYPE_CHECKING, Final

from broker.storage.arguments import EXIT_REFUSED, parse_arguments
from broker.storage.bootstrap import FormatRequest, decide_bootstrap
from broker.storage.directories import format_directory, read_directories
from broker.storage.directory_report import report_directories
from broker.storage.feature_tables import feature_dependencies, version_mapping
from broker.storage.node import read_node
from broker.storage.plan import Kind, plan_directories
from config.errors import ConfigError
from controller.bootstrap.errors import BootstrapError
from controller.bootstrap.metadata_versions import NEWEST_STABLE
from protocol.uuids import draw_uuid, to_base64
from storage.errors import DirectoryRefusedError
from storage.filesystem import LocalFileSystem

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

EXIT_OK: Final = 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for; returns the exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        "".join(words).encode()
    except UnicodeEncodeError:
        return _refuse("the command line is not UTF-8")
    options = parse_arguments(words, NEWEST_STABLE.name)
    try:
        return _run(options)
    except (ConfigError, BootstrapError, DirectoryRefusedError) as error:
        return _refuse(str(error))


def _run(options: argparse.Namespace) -> int:
    match options.command:
        case "format":
            return _format(options)
        case "info":
            return _show_info(options)
        case "version-mapping":
            _say(version_mapping(options.release_version))
        case "feature-dependencies":
            _say(feature_dependencies(options.feature))
        case "random-uuid":
            _say([to_base64(draw_uuid(secrets.token_bytes))])
    return EXIT_OK


def _format(options: argparse.Namespace) -> int:
    node = read_node(options.config, os.environ)
    request = FormatRequest(
        options.cluster_id,
        release=options.release_version,
        features=tuple(options.feature),
        credentials=tuple(options.add_scram),
        initial_controllers=options.initial_controllers,
        is_standalone=options.standalone,
        has_no_initial_controllers=options.no_initial_controllers,
        ignores_formatted=options.ignore_formatted,
    )
    now_ms = time.time_ns() // 1_000_000  # noqa: TID251  # there is no broker, whose clock it is
    bootstrap = decide_bootstrap(request, node, secrets.token_bytes)
    filesystem = LocalFileSystem()
    found = read_directories(filesystem, node.log_dirs)
    for path, reason in found.unreadable.items():
        _say([f"log directory {path} cannot be read, and is left alone: {reason}"])
    planned = plan_directories(request, node, found, bootstrap, secrets.token_bytes)
    if not planned:
        _say(["All of the log directories are already formatted."])
        return EXIT_OK
    _say([f"Bootstrap metadata: {bootstrap.describe()}"])
    checkpoint = bootstrap.checkpoint(node.controller_listener, now_ms)
    for directory in planned:
        what = f"{directory.kind.value} {directory.path}"
        _say([f"Formatting {what} with metadata.version {bootstrap.release}."])
        holds_log = node.is_controller and directory.kind is not Kind.DATA
        try:
            format_directory(filesystem, directory, checkpoint if holds_log else None, now_ms)
        except OSError as error:
            return _refuse(f"{what} is not formatted: {error}")
    return EXIT_OK


def _show_info(options: argparse.Namespace) -> int:
    node = read_node(options.config, os.environ)
    report = report_directories(LocalFileSystem(), node.log_dirs)
    _say(report.lines())
    return EXIT_REFUSED if report.problems else EXIT_OK


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")


def _refuse(why: str) -> int:
    sys.stderr.write(f"{why}\n")
    return EXIT_REFUSED


if __name__ == "__main__":
    sys.exit(main())
