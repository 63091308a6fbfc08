"""Options of the pipeline, and how those of its jobs follow from them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, PositiveInt

from spark_jobs.options import OptionsT, Servers, SparkOptions
from spark_jobs.pipeline import overview_plot

OWN_BROKER = "own"
JOBS = (
    "produce",
    "route",
    "retry",
    "aggregate",
    "archive",
    "audit",
    "enrich",
    "activity",
    "logs",
    "report",
)
"""What `--only` can name, in the order they run in."""

SHARED = frozenset(
    {
        *("bootstrap_servers", "kafka", "client", "set", "partitions", "months", "damaged"),
        *("master", "spark", "driver_memory", "shuffle_partitions", "packages", "log_level"),
        "spark_log",
    }
)
"""Options that every job gets which has them."""


def _drawable(path: Path) -> Path:
    if path.suffix.lstrip(".").lower() not in overview_plot.FORMATS:
        raise ValueError(f"expected a name that ends in one of {', '.join(overview_plot.FORMATS)}")
    return path


def _known(job: str) -> str:
    if job not in JOBS:
        raise ValueError(f"expected some of {', '.join(JOBS)}")
    return job


class PipelineOptions(SparkOptions):
    """What to run, and where the pipeline keeps its things."""

    bootstrap_servers: Servers = ""
    """HOST:PORT of a running broker; without it the pipeline starts one of its own"""

    client: dict[str, str] = Field(default={})
    """a setting of librdkafka, with which data is produced; as --kafka is for Spark"""

    only: tuple[Annotated[str, AfterValidator(_known)], ...] = ()
    """jobs to run instead of all; what they read must be there from an earlier run"""

    months: tuple[Annotated[int, Field(ge=1, le=12)], ...] = ()
    """only flights of these months"""

    damaged: Annotated[int, Field(ge=0, le=20_000)] = 300
    """damaged lines to put between the flights"""

    partitions: PositiveInt = 4
    """partitions of topics that are created"""

    set: dict[str, str] = Field(default={})
    """a parameter of the definition `flights`, e.g. delayed_from_minutes=30; may be repeated"""

    events: PositiveInt = 50_000
    """page views to make up"""

    logs: tuple[str, ...] = (
        "/var/log/dpkg.log",
        "/var/log/apt/history.log",
        "/var/log/apt/term.log",
    )
    """log files to collect, those rotated from them included; what cannot be read is left out"""

    work_dir: Path = Path("data/pipeline")
    """data of the own broker, checkpoints, archive and logs, kept for the next run"""

    page: Path = Path("data/pipeline/report.html")
    """file for the page of plots"""

    picture: Annotated[Path, AfterValidator(_drawable)] = Path("data/pipeline/delays.png")
    """file for the picture of delays by hour and airport"""

    fresh: bool = False
    """forget what earlier runs left of the own broker, its checkpoints and its archive"""

    def place(self) -> Path:
        """Return the directory that belongs to this broker and no other."""
        name = re.sub(r"[^A-Za-z0-9.,-]", "-", self.bootstrap_servers)
        return self.work_dir / (name or OWN_BROKER)

    def chosen(self) -> tuple[str, ...]:
        """Return the jobs to run, in order."""
        return tuple(job for job in JOBS if not self.only or job in self.only)

    def running_at(self, servers: str) -> PipelineOptions:
        """Return the options for a broker that runs; what is kept stays at `place`."""
        place = self.place()
        return self.model_copy(update={"bootstrap_servers": servers, "work_dir": place})

    def metrics(self, job: str) -> Path:
        """Return the file for a job's metrics, once it runs at a broker."""
        return self.work_dir / "metrics" / f"{job}.jsonl"

    def of_job(self, model: type[OptionsT], job: str, **own: Any) -> OptionsT:  # noqa: ANN401
        """Return a job's options: those it shares, its places, and its `own`."""
        given = {name: getattr(self, name) for name in SHARED & set(model.model_fields)}
        places = {
            "checkpoint": self.work_dir / "checkpoint",
            "table": self.work_dir / "tables",
            "directory": self.work_dir / "archive",
            "metrics": self.metrics(job),
            "once": True,
        }
        fields = model.model_fields
        given |= {name: value for name, value in places.items() if name in fields}
        return model(**given | own)
