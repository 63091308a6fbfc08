"""Mistreat a broker: `python -m tests.hostile --frames 1000000 --seed 1`; also `make hostile`."""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
from pathlib import Path

from tests.hostile.bisection import narrowed
from tests.hostile.clients.bystanders import Crowd
from tests.hostile.frames.frame import make_frame
from tests.hostile.frames.names import Identifiers
from tests.hostile.run import Run, Settings
from tests.hostile.verdict import coverage, describe

FOUND = 1
NOBODY = Crowd(deaf=0, claiming=0, idle=0)
SHOWN_BYTES = 2000


def main() -> int:
    """Run as the command line says; returns 1 if the broker did not do well."""
    options = _parser().parse_args()
    _raise_file_limit()
    numbers = _numbers(options)
    if options.show:
        _show(options.seed, numbers)
        return 0
    crowd = Crowd(deaf=options.deaf, claiming=options.claiming, idle=options.idle)
    settings = Settings(
        seed=options.seed,
        frames=numbers,
        directory=Path(options.directory or tempfile.mkdtemp(prefix="hostile-")),
        crowd=NOBODY if options.range or options.bisect else crowd,
        frames_per_second=options.rate,
        in_cluster=options.zookeeper,
        with_controls=not (options.range or options.bisect),
        slowest_ms=options.slowest_ms,
    )
    if options.bisect:
        found = narrowed(settings)
        if found is not None:
            _show(options.seed, found)
        return FOUND if found is not None else 0
    run = Run(settings)
    findings = run.go().findings
    print(describe(run))
    if options.coverage:
        print(coverage(run))
    print(findings.summary() or "nothing found")
    if findings.counts:
        print(f"files: {settings.directory}")
        print(f"again: python -m tests.hostile --seed {options.seed} --range FIRST-END")
    return FOUND if findings.counts else 0


def _numbers(options: argparse.Namespace) -> range:
    text = options.range or options.bisect or options.show
    if text is None:
        return range(options.frames)
    first, _, last = text.partition("-")
    return range(int(first), int(last or int(first) + 1))


def _show(seed: int, numbers: range) -> None:
    """Print frames as they would be sent to a broker that has given no identifiers yet."""
    for number in numbers:
        frame = make_frame(seed, number, Identifiers())
        more = "…" if len(frame.data) > SHOWN_BYTES else ""
        print(f"{number}: {frame.name}, {len(frame.data)} bytes {frame.harm}")
        print(f"  {frame.data[:SHOWN_BYTES].hex()}{more}")


def _raise_file_limit() -> None:
    """The crowd takes more descriptors than a shell gives by default, on both sides."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--frames", type=int, default=1_000_000, help="how many frames")
    parser.add_argument("--seed", type=int, default=1, help="what they are made from")
    parser.add_argument(
        "--rate", type=float, default=1300.0, help="frames a second; 0 is as fast as it goes"
    )
    parser.add_argument("--deaf", type=int, default=200, help="connections that never read")
    parser.add_argument("--claiming", type=int, default=200, help="connections that claim 100 MB")
    parser.add_argument("--idle", type=int, default=2000, help="connections that come and go")
    parser.add_argument("--zookeeper", action="store_true", help="a cluster of one, not a lone one")
    parser.add_argument(
        "--slowest-ms", type=float, default=50.0, help="p99 of Metadata that is good enough"
    )
    parser.add_argument("--directory", help="for the broker's files and what is found")
    parser.add_argument("--coverage", action="store_true", help="show answers by request")
    parser.add_argument("--range", metavar="FIRST-END", help="send these frames alone")
    parser.add_argument("--bisect", metavar="FIRST-END", help="look for the one that does harm")
    parser.add_argument("--show", metavar="FIRST-END", help="print these frames")
    return parser


if __name__ == "__main__":
    sys.exit(main())
