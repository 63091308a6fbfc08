"""Metrics and telemetry."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import CLUSTER_WIDE, LOW, boolean, integer, long, string, strings


@dataclass(frozen=True, init=False, repr=False, eq=False)
class MetricKeys:
    """Metrics and telemetry."""

    auto_include_jmx_reporter: bool = boolean(True, importance=LOW)
    """Offer metrics over JMX."""

    kafka_metrics_polling_interval_secs: int = integer(10, low=1, importance=LOW)
    """Reporting interval of Apache Kafka's older metrics."""

    kafka_metrics_reporters: tuple[str, ...] = strings(importance=LOW)
    """Java classes that report Apache Kafka's older metrics."""

    metric_reporters: tuple[str, ...] = strings(importance=LOW, scope=CLUSTER_WIDE)
    """Java classes that report metrics."""

    metrics_num_samples: int = integer(2, low=1, importance=LOW)
    """Samples kept to compute a metric."""

    metrics_recording_level: str = string("INFO", importance=LOW)
    """Level of detail of the metrics: `INFO`, `DEBUG` or `TRACE`."""

    metrics_sample_window_ms: int = long(30_000, low=1, importance=LOW)
    """Span of each of those samples."""

    telemetry_max_bytes: int = integer(1 << 20, low=1, importance=LOW, acts=True)
    """Largest batch of metrics a client may push."""
