"""`python -m spark_jobs NAME ...`: run one of the jobs; without a name, list them."""

from __future__ import annotations

import sys

from spark_jobs.definitions.fields import near
from spark_jobs.errors import EXIT_BAD_OPTION
from spark_jobs.jobs.catalogue import JOBS, job_module
from spark_jobs.program import PROGRAM


def main(argv: list[str]) -> int:
    """Run the job that is named first; return the process's exit code."""
    if not argv or argv[0] in {"-h", "--help"}:
        print(f"usage: {PROGRAM} NAME [--help] [options]\n")
        for name, line in JOBS.items():
            print(f"  {name:<18}{line}")
        return 0
    name, *arguments = argv
    if name not in JOBS:
        words = near(name, JOBS) or f"; there are: {', '.join(JOBS)}"
        print(f"error: there is no job '{name}'{words}", file=sys.stderr)
        return EXIT_BAD_OPTION
    code: int = job_module(name).main(arguments)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
