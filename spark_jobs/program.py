"""How a person runs a job from a shell, and what jobs start as a broker of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Final

PREFIX: Final = __name__.removesuffix("spark_jobs.program")
"""What stands before the names of our packages: nothing, unless they are installed."""
PROGRAM: Final = f"python -m {PREFIX}spark_jobs"
BROKER: Final = f"{PREFIX}broker"
"""What `python -m` runs as a broker, in the directory `CODE`."""
CODE: Final = Path(__file__).resolve().parents[__name__.count(".")]
BROKER_CONFIG: Final = Path(__file__).resolve().parents[1] / "config" / "server.properties"
