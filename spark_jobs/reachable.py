"""The first check of every job: that something listens where the broker should be."""

from __future__ import annotations

import socket

from spark_jobs.errors import JobError
from spark_jobs.options import server_address

CONNECT_TIMEOUT_SECONDS = 3.0


def check_reachable(bootstrap_servers: str) -> None:
    """Raise `JobError` unless something listens at one of the servers."""
    reasons = []
    for server in bootstrap_servers.split(","):
        try:
            with socket.create_connection(server_address(server), CONNECT_TIMEOUT_SECONDS):
                return
        except OSError as error:
            reasons.append(f"{server}: {_reason(error)}")
    raise JobError(
        f"no broker listens at {'; '.join(reasons)}. "
        "Start one with `make run`, or name yours with --bootstrap-servers HOST:PORT"
    )


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer"
    return (getattr(error, "strerror", None) or str(error)).lower()
