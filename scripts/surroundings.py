"""`make test` in surroundings that another machine may have, one after the other, with a table.

    scripts/surroundings.py                            all of them
    scripts/surroundings.py umask one-core             these
    scripts/surroundings.py --args "tests/broker" ...  with `make test ARGS=...`

Settings of the network are made in a network namespace, a file system in a mount namespace, so the
machine stays as it is. Both take root, or a kernel that lets users have namespaces; a surrounding
that cannot be made is listed as such, with the reason, and was not tried. What pytest says is kept
in build/surroundings/. Fails if a run does.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from subprocess import STDOUT
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "build" / "surroundings"
RUN = 'exec "$@"'
LOOPBACK = "ip link set lo up"
TMPFS = "mount -t tmpfs tmpfs /mnt && chmod 1777 /mnt"
NETWORK = ("--net",)
MOUNTS = ("--mount",)
OUTCOME = re.compile(r"^=* ?((?:\d+ \w+,? ?)+ in .*?) ?=*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Surrounding:
    """What is set before the tests begin, by a shell in namespaces of its own."""

    set_up: str = ":"
    """A line of shell."""
    namespaces: tuple[str, ...] = ()
    """Flags of `unshare`; none if the machine's own will do."""
    busy_loops: int = 0
    """Processes that compute beside the tests."""


def with_sysctl(*settings: str) -> Surrounding:
    """Settings of the network, as `sysctl` takes them."""
    written = " ".join(f"'{setting}'" for setting in settings)
    return Surrounding(f"{LOOPBACK} && sysctl -qw {written}", NETWORK)


SURROUNDINGS = {
    "small-buffers": with_sysctl(
        "net.ipv4.tcp_rmem=4096 4096 4096", "net.ipv4.tcp_wmem=4096 4096 4096"
    ),
    "large-buffers": with_sysctl(
        "net.ipv4.tcp_rmem=4096 33554432 33554432", "net.ipv4.tcp_wmem=4096 33554432 33554432"
    ),
    "no-ipv6": with_sysctl(
        "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1"
    ),
    "c-locale": Surrounding("unset LANG LC_CTYPE; export LC_ALL=C"),
    "umask": Surrounding("umask 077"),
    "one-core": Surrounding(f"taskset -pc {min(os.sched_getaffinity(0))} $$ >/dev/null"),
    "other-file-system": Surrounding(f"{TMPFS} && export TMPDIR=/mnt", MOUNTS),
    "busy": Surrounding(busy_loops=2),
}


def main() -> int:
    """Run what is asked for; return the process's exit code."""
    parser = argparse.ArgumentParser(description="make test as on other machines")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SURROUNDINGS))
    parser.add_argument("--args", default="", help="ARGS of make test")
    options = parser.parse_args()
    if unknown := set(options.names) - SURROUNDINGS.keys():
        parser.error(f"no such surrounding: {', '.join(sorted(unknown))}")
    KEPT.mkdir(parents=True, exist_ok=True)
    has_failed = False
    print(f"{'surrounding':20}{'outcome':10}{'s':>6}  pytest", flush=True)
    for name in options.names or SURROUNDINGS:
        outcome, seconds, told = tried(name, f"ARGS={options.args}")
        has_failed |= outcome == "failed"
        print(f"{name:20}{outcome:10}{seconds:6.0f}  {told}", flush=True)
    return int(has_failed)


def tried(name: str, arguments: str) -> tuple[str, float, str]:
    """Run the tests in a surrounding: what came of it, how long it took, and in pytest's words."""
    surrounding = SURROUNDINGS[name]
    try_it = inside(surrounding, ["true"])
    probe = subprocess.run(try_it, capture_output=True, text=True, check=False)
    if probe.returncode:
        return "not made", 0.0, " ".join(probe.stderr.split())
    log = KEPT / f"{name}.log"
    began = time.monotonic()
    with log.open("w") as output, beside_loops(surrounding.busy_loops):
        command = inside(surrounding, ["make", "--no-print-directory", "test", arguments])
        done = subprocess.run(command, cwd=ROOT, stdout=output, stderr=STDOUT, check=False)
    found = OUTCOME.findall(log.read_text(errors="replace"))
    outcome = "failed" if done.returncode else "passed"
    return outcome, time.monotonic() - began, found[-1] if found else f"see {log}"


def inside(surrounding: Surrounding, command: list[str]) -> list[str]:
    """The command line of a command in a surrounding."""
    shell = ["sh", "-c", f"{surrounding.set_up} && {RUN}", "sh", *command]
    if not surrounding.namespaces:
        return shell
    as_root = () if os.geteuid() == 0 else ("--map-root-user",)
    return ["unshare", *as_root, *surrounding.namespaces, *shell]


@contextlib.contextmanager
def beside_loops(count: int) -> Iterator[None]:
    """Have so many processes compute for nothing."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for one in loops:
            one.kill()
            one.wait()


if __name__ == "__main__":
    sys.exit(main())
