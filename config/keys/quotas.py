"""Quotas on clients and on the controller."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import LOW, class_name, integer


@dataclass(frozen=True, init=False, repr=False, eq=False)
class QuotaKeys:
    """Quotas on clients and on the controller."""

    client_quota_callback_class: str | None = class_name(importance=LOW)
    """Java class that decides which quota a client has."""

    controller_quota_window_num: int = integer(11, low=1, importance=LOW, acts=True)
    """Samples kept to throttle changes of metadata."""

    controller_quota_window_size_seconds: int = integer(1, low=1, importance=LOW, acts=True)
    """Span of each of those samples."""

    quota_window_num: int = integer(11, low=1, importance=LOW, acts=True)
    """Samples kept to throttle clients."""

    quota_window_size_seconds: int = integer(1, low=1, importance=LOW, acts=True)
    """Span of each of those samples."""
