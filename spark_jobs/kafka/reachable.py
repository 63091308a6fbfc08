"""The first checks of every job: that something listens where broker and Spark should be."""

from __future__ import annotations

import socket

from spark_jobs.errors import BadOptionError, JobError
from spark_jobs.options import server_address

CONNECT_TIMEOUT_SECONDS = 3.0
STANDALONE = "spark://"


def check_reachable(bootstrap_servers: str) -> None:
    """Raise `JobError` unless something listens at one of the servers."""
    reasons = _unreachable_of("--bootstrap-servers", bootstrap_servers, bootstrap_servers)
    if reasons:
        raise JobError(
            f"no broker listens at {'; '.join(reasons)}. "
            "Start one with `make run`, or name yours with --bootstrap-servers HOST:PORT"
        )


def check_master(master: str) -> None:
    """Raise `JobError` if `master` is that of a standalone cluster, and nothing listens there.

    Spark itself would try for a minute, and then fail with a stack of calls.
    """
    if not master.startswith(STANDALONE):
        return
    reasons = _unreachable_of("--master", master, master.removeprefix(STANDALONE))
    if reasons:
        raise JobError(f"--master: no Spark master listens at {'; '.join(reasons)}")


def _unreachable_of(option: str, given: str, servers: str) -> list[str]:
    """As `_unreachable`; raises BadOptionError when one is no HOST:PORT."""
    try:
        return _unreachable(servers.split(","))
    except ValueError as error:
        raise BadOptionError(f"{option}: {error}, got '{given}'") from error


def _unreachable(servers: list[str]) -> list[str]:
    """Return why each of the servers cannot be reached; nothing when one can."""
    reasons = []
    for server in servers:
        try:
            with socket.create_connection(server_address(server), CONNECT_TIMEOUT_SECONDS):
                return []
        except OSError as error:
            reasons.append(f"{server}: {_reason(error)}")
    return reasons


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer"
    return (getattr(error, "strerror", None) or str(error)).lower()
