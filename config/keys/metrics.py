"""Metrics and telemetry."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import CLUSTER_WIDE, LOW, boolean, integer, long, string, strings


@dataclass(frozen=True, init=False, repr=False, eq=False)
class MetricKeys:
    """Metrics and telemetry."""

    auto_include_jmx_reporter: bool = boolean(True, importance=LOW)

    kafka_metrics_polling_interval_secs: int = integer(10, low=1, importance=LOW)

    kafka_metrics_reporters: tuple[str, ...] = strings(importance=LOW)

    metric_reporters: tuple[str, ...] = strings(importance=LOW, scope=CLUSTER_WIDE)

    metrics_num_samples: int = integer(2, low=1, importance=LOW)

    metrics_recording_level: str = string("INFO", importance=LOW)

    metrics_sample_window_ms: int = long(30_000, low=1, importance=LOW)

    telemetry_max_bytes: int = integer(1 << 20, low=1, importance=LOW)
