"""`python -m spark_jobs.pipeline`."""

from __future__ import annotations

import sys

from spark_jobs.pipeline.pipeline import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
