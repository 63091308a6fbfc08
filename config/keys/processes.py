"""Several brokers on one machine, which `python -m broker.node` starts and watches."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import LOW, boolean, integer, long, string, strings


@dataclass(frozen=True, init=False, repr=False, eq=False)
class ProcessKeys:
    """Several brokers on one machine, which `python -m broker.node` starts and watches."""

    broker_cpus: tuple[str, ...] = strings(importance=LOW, acts=True)
    """CPUs that the broker may use, as `0-3,8`; empty is all of them.

    With `broker.processes` the list is dealt out: of `0-7`, the first of four brokers has 0 and 1.
    """

    broker_processes: int = integer(1, low=1, high=256, acts=True)
    """Number of brokers that `python -m broker.node` runs on this machine.

    Their ids and ports count up from those in the file; docs/node.md has all the rules."""

    broker_processes_directory: str | None = string(None, importance=LOW, acts=True)
    """Directory of their locks and sockets; none is `node` in the first of `log.dirs`."""

    broker_processes_restart_backoff_max_ms: int = long(60_000, low=1, importance=LOW, acts=True)
    """Longest wait before one of these brokers is started again."""

    broker_processes_restart_backoff_ms: int = long(1000, low=1, importance=LOW, acts=True)
    """Wait before one that has ended is started again; it doubles each time, until one serves."""

    broker_processes_stop_timeout_ms: int = long(300_000, low=1000, importance=LOW, acts=True)
    """Time that one of these brokers may take to stop before it is killed."""

    broker_processes_sync_timeout_ms: int = long(600_000, low=1000, importance=LOW, acts=True)
    """Time that a rolling restart waits, before each step, for all replicas to be in sync."""

    status_socket: str | None = string(None, importance=LOW, acts=True)
    """Path of a Unix socket at which the broker reports its state to the supervisor of its
    machine."""

    status_socket_metrics: bool = boolean(False, importance=LOW, acts=True)
    """Report metrics there as well.

    With `broker.processes` this is on if there is a `metrics.port`, which is the supervisor's."""
