"""List of the compiled modules: those in which requests, and the log cleaner, spend their time.

All are one library. Calls between them are calls in C, and objects of one are known to the others
by their layout, so it is used as a whole or not at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

ROOMS: Final = (
    "protocol/delays",
    "protocol/records",
    "storage",
    "storage/append",
    "storage/compaction",
    "storage/compaction/columns",
    "storage/delays",
    "storage/log",
    "storage/producer",
    "storage/segment",
)
"""Folders all of whose modules are compiled, but for those below them."""

SINGLE: Final[tuple[str, ...]] = (
    "broker/handlers/records/appends.py",
    "broker/handlers/records/produce.py",
    "broker/handlers/records/fetch_read.py",
    "broker/handlers/records/fetch.py",
    "broker/handlers/records/delayed_fetch.py",
    "broker/metrics/request_counts.py",
    "broker/network/send_queue.py",
    "broker/partitions/commit_waiters.py",
    "broker/partitions/watchers.py",
    "broker/requests/dispatch.py",
    "broker/requests/versioned_route.py",
    "broker/fetch/fetch_sessions.py",
    "protocol/headers.py",
)
"""Other modules, as paths."""

PREFIX: Final = __name__.removesuffix("compiled.modules")
"""Prefix of our module names: empty, unless they are installed."""

PURE: Final = frozenset(
    {
        "storage/compaction/__main__.py",
        "storage/compaction/choice.py",
        "storage/disk.py",
        "storage/filesystem.py",
        "storage/linux_aio.py",
        "storage/log/flushes.py",
        "storage/log/log.py",
        "storage/log/truncation.py",
        "storage/side_process.py",
    }
)
"""Modules of compiled packages that stay plain: entry points, and rarely used code."""


def sources(root: Path) -> list[str]:
    """Paths of all modules to be compiled, relative to the directory of the code."""
    found = [
        path.relative_to(root).as_posix() for room in ROOMS for path in (root / room).glob("*.py")
    ]
    return sorted(
        path for path in {*found, *SINGLE} if path not in PURE and not path.endswith("/__init__.py")
    )


def name_of(source: str) -> str:
    """The module that `a/b.py` is."""
    return PREFIX + source.removesuffix(".py").replace("/", ".")


def path_of(root: Path, name: str) -> str | None:
    """The path, relative to the directory of the code, of a module of ours; None if it is not."""
    if not name.startswith(PREFIX):
        return None
    path = name.removeprefix(PREFIX).replace(".", "/")
    for candidate in (f"{path}.py", f"{path}/__init__.py"):
        if (root / candidate).is_file():
            return candidate
    return None
